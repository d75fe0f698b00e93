export * from "@tenure/core/Mountable"
