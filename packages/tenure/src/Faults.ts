export * from "@tenure/core/Faults"
