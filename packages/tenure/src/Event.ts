export * from "@tenure/core/Event"
