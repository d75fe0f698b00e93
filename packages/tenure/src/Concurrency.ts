export * from "@tenure/core/Concurrency"
