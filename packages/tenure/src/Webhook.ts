export * from "@tenure/core/Webhook"
