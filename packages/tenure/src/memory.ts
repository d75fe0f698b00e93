export * from "@tenure/memory"
