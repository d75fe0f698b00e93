export * from "@tenure/fastify"
