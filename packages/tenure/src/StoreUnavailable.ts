export * from "@tenure/core/StoreUnavailable"
