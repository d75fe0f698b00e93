export * from "@tenure/core/InvalidInput"
