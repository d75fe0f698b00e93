export * from "@tenure/core/Handler"
