export * from "@tenure/core/HostLogger"
