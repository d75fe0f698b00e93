export * from "@tenure/core/Prometheus"
