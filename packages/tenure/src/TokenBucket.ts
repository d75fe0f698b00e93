export * from "@tenure/core/TokenBucket"
