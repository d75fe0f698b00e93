export * from "@tenure/core/Ticket"
