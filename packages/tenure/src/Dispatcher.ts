export * from "@tenure/core/Dispatcher"
