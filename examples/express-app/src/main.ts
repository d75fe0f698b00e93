/** Starts the backend. */

import { makeApp } from "./app.ts"
import { openDatabase } from "./database.ts"
import * as Log from "./log.ts"
import { makeTenure } from "./memberships.ts"

const { DATABASE_FILE = ":memory:", DATABASE_URL, PORT = "3000" } = process.env

const database = openDatabase(DATABASE_FILE)
const tenure = await makeTenure(database, DATABASE_URL)
const server = makeApp(database, tenure).listen(Number(PORT), "127.0.0.1", (error) => {
  if (error !== undefined) throw error
  Log.info("listening", { address: server.address() })
})

process.once("SIGTERM", () => {
  // Closes the server first, because requests in flight need Tenure and the database.
  server.close(() => void tenure.close().finally(database.close))
  // Disconnects slow clients after 10 seconds.
  setTimeout(() => server.closeAllConnections(), 10_000).unref()
})
