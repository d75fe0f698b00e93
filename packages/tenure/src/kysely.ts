export * from "@tenure/postgres/kysely"
