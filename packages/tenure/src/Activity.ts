export * from "@tenure/core/Activity"
