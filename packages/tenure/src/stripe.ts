export * from "@tenure/stripe"
