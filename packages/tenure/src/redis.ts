export * from "@tenure/redis"
