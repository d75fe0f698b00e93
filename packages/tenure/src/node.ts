export * from "@tenure/node-http"
