export * from "@tenure/core/HeaderFields"
