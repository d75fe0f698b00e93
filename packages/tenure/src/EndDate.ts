export * from "@tenure/core/EndDate"
