export * from "@tenure/core/ApiKeyStore"
