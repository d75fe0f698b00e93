export * from "@tenure/testing"
export * from "@tenure/testing/postgres-server"
