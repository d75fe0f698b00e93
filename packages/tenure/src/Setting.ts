export * from "@tenure/core/Setting"
