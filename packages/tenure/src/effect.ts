export * from "@tenure/core/effect"
