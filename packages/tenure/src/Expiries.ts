export * from "@tenure/core/Expiries"
