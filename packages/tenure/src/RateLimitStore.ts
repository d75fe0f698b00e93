export * from "@tenure/core/RateLimitStore"
