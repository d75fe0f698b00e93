export * from "@tenure/core/Origin"
