export * from "@tenure/console"
