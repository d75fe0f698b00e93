export * from "@tenure/core/signature"
