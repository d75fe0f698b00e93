export * from "@tenure/core/Memberships"
