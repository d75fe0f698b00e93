export * from "@tenure/core/FeedStore"
