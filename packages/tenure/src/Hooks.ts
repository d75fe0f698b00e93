export * from "@tenure/core/Hooks"
