export * from "@tenure/core/Project"
