export * from "@tenure/core/Webhooks"
