export * from "@tenure/core/Moment"
