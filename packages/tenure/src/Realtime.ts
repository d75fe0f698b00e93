export * from "@tenure/core/Realtime"
