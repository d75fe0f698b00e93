export * from "@tenure/core/Listeners"
