export * from "@tenure/testing/conformance"
export * from "@tenure/testing/postgres-server"
