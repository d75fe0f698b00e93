export * from "@tenure/testing/PostgresServer"
