export * from "@tenure/core/http-router"
