export * from "@tenure/core/Metrics"
