export * from "@tenure/core/Expiry"
