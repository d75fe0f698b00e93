export * from "@tenure/core/ApiError"
