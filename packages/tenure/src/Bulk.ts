export * from "@tenure/core/Bulk"
