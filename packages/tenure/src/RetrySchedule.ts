export * from "@tenure/core/RetrySchedule"
