export * from "@tenure/core/Instruments"
