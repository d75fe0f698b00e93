/** How thoroughly to measure, and on which database. */

import { startPostgres } from "@tenure/testing/postgres-server"
import { type Database, connect } from "./database.ts"
import type { Settings } from "./measurement.ts"

const openDatabase = async (): Promise<Database> => {
  const given = process.env["DATABASE_URL"]
  if (given !== undefined) return connect(given)
  const server = await startPostgres()
  const database = await connect(server.url)
  return {
    ...database,
    close: async () => {
      await database.close()
      await server.stop()
    },
  }
}

/** Passes the settings to a function, and closes afterwards everything that it opened. */
export const withSettings = async <A>(
  { isLarge, isSmoke }: { readonly isLarge: boolean; readonly isSmoke: boolean },
  use: (settings: Settings) => Promise<A>,
): Promise<A> => {
  let opening: Promise<Database> | undefined
  try {
    return await use({
      rounds: isSmoke ? 1 : Number(process.env["ROUNDS"] ?? 5),
      seconds: isSmoke ? 0.05 : Number(process.env["ROUND_SECONDS"] ?? 2),
      isLarge,
      pick: (thorough, smoke) => (isSmoke ? smoke : thorough),
      database: () => (opening ??= openDatabase()),
    })
  } finally {
    // If it could not be opened, the section that asked for it has failed already.
    await opening?.then(
      ({ close }) => close(),
      () => undefined,
    )
  }
}
