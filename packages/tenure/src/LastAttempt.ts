export * from "@tenure/core/LastAttempt"
