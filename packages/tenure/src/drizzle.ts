export * from "@tenure/postgres/drizzle"
