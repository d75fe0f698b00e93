export * from "@tenure/core/Encryption"
