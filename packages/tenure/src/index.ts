export * from "@tenure/core"
