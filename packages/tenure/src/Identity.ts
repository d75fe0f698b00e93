export * from "@tenure/core/Identity"
