export * from "@tenure/core/Feed"
