export * from "@tenure/core/Tickets"
