export * from "@tenure/client"
