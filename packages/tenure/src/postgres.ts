export * from "@tenure/postgres"
