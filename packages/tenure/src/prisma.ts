export * from "@tenure/postgres/prisma"
