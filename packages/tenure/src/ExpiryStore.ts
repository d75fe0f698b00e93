export * from "@tenure/core/ExpiryStore"
