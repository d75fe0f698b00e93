/** A million memberships, imported over HTTP into PostgreSQL. */

import type { Tenure } from "@tenure/core"
import { serve } from "@tenure/node-http"
import { onDatabase } from "../database.ts"
import type { Findings, Section, Settings } from "../measurement.ts"

const linesPerImport = 10_000

const linesOf = (part: number, size: number): string =>
  Array.from({ length: size }, (_, index) =>
    JSON.stringify({ user_id: String(part * size + index), end_date: "2099-01-01T00:00:00.000Z" }),
  ).join("\n")

/** Imports a part of the members. */
const send = async (url: string, token: string, body: string): Promise<void> => {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" }
  const response = await fetch(url, { method: "POST", headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(text)
}

const measure = async (tenure: Tenure, settings: Settings): Promise<Findings> => {
  await tenure.memberships.createProject("moved")
  const { token } = await tenure.apiKeys.issue({ projects: ["moved"], role: "operator" })
  const server = await serve(tenure)
  const url = `${server.url}/v2/projects/moved/memberships/import`
  const size = settings.pick(linesPerImport, 100)
  const parts = settings.pick(100, 2)
  const begin = performance.now()
  for (let part = 0; part < parts; part++) {
    await send(url, token, linesOf(part, size))
  }
  const seconds = (performance.now() - begin) / 1000
  await server.close()
  return {
    rows: [
      {
        measured: "a million memberships imported over HTTP, one part after the other",
        unit: "s",
        figure: seconds,
        target: { of: "figure", atMost: 120 },
      },
    ],
  }
}

/** The time of a large import. */
export const imports: Section = {
  name: "imports",
  measure: onDatabase((_, tenure, settings) => measure(tenure, settings)),
}
