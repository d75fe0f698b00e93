export * from "@tenure/core/Keyring"
