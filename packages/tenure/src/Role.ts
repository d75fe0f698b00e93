export * from "@tenure/core/Role"
