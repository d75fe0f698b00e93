export * from "@tenure/core/History"
