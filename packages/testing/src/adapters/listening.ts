/** Servers of hosts under test. */

import type { Server } from "node:http"
import type { Tenure } from "@tenure/core/Tenure"
import type { RunningServer } from "./AdapterHarness.ts"

/** Starts a host's server on a free port. Its `close` also closes all connections, and Tenure. */
export const listening = async (server: Server, tenure: Tenure): Promise<RunningServer> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  const close = async () => {
    server.close()
    server.closeAllConnections()
    await tenure.close()
  }
  return { url: `http://127.0.0.1:${port}`, tenure, close }
}
