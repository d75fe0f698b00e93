export * from "@tenure/core/ProjectDirectory"
