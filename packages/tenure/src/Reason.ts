export * from "@tenure/core/Reason"
