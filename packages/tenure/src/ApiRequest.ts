export * from "@tenure/core/ApiRequest"
