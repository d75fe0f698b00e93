export * from "@tenure/core/ApiKey"
