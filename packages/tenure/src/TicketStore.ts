export * from "@tenure/core/TicketStore"
