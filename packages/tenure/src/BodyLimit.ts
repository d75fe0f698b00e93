export * from "@tenure/core/BodyLimit"
