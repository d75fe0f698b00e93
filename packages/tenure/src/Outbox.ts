export * from "@tenure/core/Outbox"
