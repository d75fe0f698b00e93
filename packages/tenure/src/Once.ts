export * from "@tenure/core/Once"
