export * from "@tenure/core/RateLimiter"
