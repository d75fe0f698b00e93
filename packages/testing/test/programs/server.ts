/** A program that starts a server, prints where it is, and ends in the way that it is told to. */

import { startPostgres } from "../../src/support/postgres-server.ts"

const endings: Readonly<Record<string, () => unknown>> = {
  "stops the server": () => server.stop(),
  "returns without a stop": () => {},
  "fails with an exception": () => {
    throw new Error("on purpose")
  },
  "exits with a code": () => process.exit(3),
  "waits for a signal": () => setInterval(() => {}, 60_000),
}

const server = await startPostgres({ settings: { fsync: "off" } })
process.stdout.write(`${JSON.stringify(server)}\n`)
await endings[process.argv[2] ?? ""]?.()
