export * from "@tenure/core/ApiKeys"
