export * from "@tenure/core/openapi"
