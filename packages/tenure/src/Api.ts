export * from "@tenure/core/Api"
