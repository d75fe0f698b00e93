export * from "@tenure/core/HttpRoutes"
