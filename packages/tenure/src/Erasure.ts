export * from "@tenure/core/Erasure"
