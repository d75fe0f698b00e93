export * from "@tenure/core/Suspension"
