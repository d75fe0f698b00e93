export * from "@tenure/postgres/within"
// For the payments that a host records in the same transaction.
export { applyPayment, readPayment } from "@tenure/stripe/payment"
