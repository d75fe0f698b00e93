export * from "@tenure/core/Flush"
