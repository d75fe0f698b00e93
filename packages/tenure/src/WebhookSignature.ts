export * from "@tenure/core/WebhookSignature"
