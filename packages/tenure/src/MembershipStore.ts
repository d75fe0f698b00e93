export * from "@tenure/core/MembershipStore"
