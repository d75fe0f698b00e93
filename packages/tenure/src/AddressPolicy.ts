export * from "@tenure/core/AddressPolicy"
