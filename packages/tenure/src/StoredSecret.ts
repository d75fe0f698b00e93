export * from "@tenure/core/StoredSecret"
