export * from "@tenure/core/Events"
