export * from "@tenure/core/transport"
