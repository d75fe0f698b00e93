export * from "@tenure/core/WebhookUrl"
