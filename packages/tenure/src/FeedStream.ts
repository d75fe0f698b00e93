export * from "@tenure/core/FeedStream"
