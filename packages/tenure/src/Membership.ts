export * from "@tenure/core/Membership"
