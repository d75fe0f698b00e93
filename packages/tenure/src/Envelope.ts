export * from "@tenure/core/Envelope"
