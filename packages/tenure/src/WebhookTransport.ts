export * from "@tenure/core/WebhookTransport"
