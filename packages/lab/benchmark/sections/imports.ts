/** A million memberships imported over HTTP, while others extend theirs. */

import { setTimeout as sleep } from "node:timers/promises"
import type { Answered, Load } from "../load-generator.ts"
import type { Row, Section, Settings } from "../measurement.ts"
import { type Child, type ServerProcess, start, startServer } from "../processes.ts"
import { importPath, importToken, requests } from "../servers/workload.ts"

const schema = "benchmark_imports"

const linesPerImport = 10_000

const linesOf = (part: number, size: number): string =>
  Array.from({ length: size }, (_, index) =>
    JSON.stringify({ user_id: String(part * size + index), end_date: "2099-01-01T00:00:00.000Z" }),
  ).join("\n")

/** Imports a part of the members. */
const send = async (port: number, body: string): Promise<void> => {
  const headers = {
    authorization: `Bearer ${importToken}`,
    "content-type": "application/x-ndjson",
  }
  const url = `http://127.0.0.1:${port}${importPath}`
  const response = await fetch(url, { method: "POST", headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
}

/** Imports parts one after the other. */
const importAll = async ({ port }: ServerProcess, bodies: ReadonlyArray<string>): Promise<void> => {
  for (const body of bodies) await send(port, body)
}

/** Extends members, about 300 times a second, and returns the time that 99 % of the requests took at most. */
const extend = async (generator: Child, { port }: ServerProcess, seconds: number) => {
  const load: Load = { port, connections: 16, seconds, restMillis: 50, requests: requests() }
  const { failures, firstFailure, p99 } = await generator.ask<Answered>(load)
  if (failures > 0) throw new Error(firstFailure)
  return p99
}

/** Measures the import alone, and then extensions alone and beside further imports. */
const measure = async (
  where: string,
  server: ServerProcess,
  settings: Settings,
  atMost: number,
): Promise<ReadonlyArray<Row>> => {
  const size = settings.pick(linesPerImport, 100)
  const parts = settings.pick(100, 2)
  // Made beforehand, because the server shares the processors with this process.
  const bodies = Array.from({ length: parts }, (_, part) => linesOf(part, size))
  const further = Array.from({ length: settings.pick(20, 2) }, (_, index) =>
    linesOf(parts + index, size),
  )
  const generator = await start("./load-generator.ts")
  const begin = performance.now()
  await importAll(server, bodies)
  const seconds = (performance.now() - begin) / 1000
  const extending = 2 * settings.seconds
  await extend(generator, server, extending)
  const alone = await extend(generator, server, extending)
  const importing = importAll(server, further)
  await sleep(100)
  const beside = await extend(generator, server, extending)
  await importing
  generator.stop()
  return [
    {
      measured: `a million memberships imported over HTTP ${where}, one part after the other`,
      unit: "s",
      figure: seconds,
      target: { of: "figure", atMost },
    },
    {
      measured: `p99 of an extension ${where} during imports`,
      unit: "ms",
      figure: beside,
      yardstick: { name: "without an import", figure: alone },
      target: { of: "ratio", atMost: 2 },
    },
  ]
}

/** The time of a large import, and what others notice of it. */
export const imports: Section = {
  name: "imports",
  measure: async (settings) => {
    const { sql, url } = await settings.database()
    await sql(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    const onPostgres = await startServer("tenure-postgres", [url, schema, "16"])
    const rows = [...(await measure("into PostgreSQL", onPostgres, settings, 12))]
    onPostgres.stop()
    await sql(`DROP SCHEMA ${schema} CASCADE`)
    const inFolder = await startServer("tenure-folder")
    rows.push(...(await measure("into a folder", inFolder, settings, 90)))
    inFolder.stop()
    return { rows }
  },
}
