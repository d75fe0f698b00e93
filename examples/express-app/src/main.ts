/** Starts the backend. */

import { makeApp } from "./app.ts"
import { openDatabase } from "./database.ts"
import * as Log from "./log.ts"
import { makeTenure } from "./memberships.ts"

const { DATABASE_FILE = ":memory:", DATABASE_URL, PORT = "3000" } = process.env

const database = openDatabase(DATABASE_FILE)
const tenure = await makeTenure(database, DATABASE_URL)
const server = makeApp(database, tenure).listen(Number(PORT), "127.0.0.1", (fault) => {
  if (fault !== undefined) throw fault
  Log.info("listens", { address: server.address() })
})

process.once("SIGTERM", () => {
  // First the server, whose requests need Tenure and the database until they are answered.
  server.close(() => void tenure.close().finally(database.close))
  // Who has not been answered by then is a client that dawdles.
  setTimeout(() => server.closeAllConnections(), 10_000).unref()
})
