export * from "@tenure/core/BucketTable"
