export * from "@tenure/core/Route"
