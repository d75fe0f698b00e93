export * from "@tenure/core/adapter"
