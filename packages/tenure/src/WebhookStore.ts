export * from "@tenure/core/WebhookStore"
