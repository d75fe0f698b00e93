/** A million memberships imported over HTTP, while others extend theirs. */

import { setTimeout as sleep } from "node:timers/promises"
import { withSchema } from "../database.ts"
import type { Row, Section, Settings } from "../measurement.ts"
import {
  type Child,
  type ServerProcess,
  generate,
  startGenerator,
  startServer,
} from "../processes.ts"
import { importPath, importToken, requests } from "../servers/workload.ts"

const schema = "benchmark_imports"

const linesPerImport = 10_000

const linesOf = (part: number, size: number): string =>
  Array.from({ length: size }, (_, index) =>
    JSON.stringify({ user_id: String(part * size + index), end_date: "2099-01-01T00:00:00.000Z" }),
  ).join("\n")

/** Imports parts one after the other. */
const importAll = async ({ port }: ServerProcess, bodies: ReadonlyArray<string>): Promise<void> => {
  const headers = { authorization: `Bearer ${importToken}`, "content-type": "application/x-ndjson" }
  const url = `http://127.0.0.1:${port}${importPath}`
  for (const body of bodies) {
    const response = await fetch(url, { method: "POST", headers, body })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
  }
}

/** Extends members, about 300 times a second, and returns the 99th percentile. */
const extend = async (generator: Child, { port }: ServerProcess, seconds: number) => {
  const load = { port, connections: 16, seconds, restMillis: 50, requests: requests() }
  return (await generate(generator, load, "the server")).p99
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
  const generator = await startGenerator()
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

/** How long a large import takes, and what others notice. */
export const imports: Section = {
  name: "imports",
  measure: async (settings) => {
    const database = await settings.database()
    const into = async (where: string, atMost: number, ...options: ReadonlyArray<string>) => {
      const server = await startServer("tenure", ...options)
      const rows = await measure(where, server, settings, atMost)
      server.stop()
      return rows
    }
    const rows = await withSchema(database, schema, () =>
      into("into PostgreSQL", 12, "postgres", database.url, schema, "16"),
    )
    return { rows: [...rows, ...(await into("into a folder", 90, "folder"))] }
  },
}
