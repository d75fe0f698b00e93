export * from "@tenure/postgres/within"
