export * from "@tenure/better-auth"
