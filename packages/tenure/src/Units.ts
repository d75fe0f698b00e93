export * from "@tenure/core/Units"
