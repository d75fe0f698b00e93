export * from "@tenure/core/store"
