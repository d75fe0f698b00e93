export * from "@tenure/core/Transactions"
