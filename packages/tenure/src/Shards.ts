export * from "@tenure/core/Shards"
