export * from "@tenure/core/Status"
