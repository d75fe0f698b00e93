/** How often one request over HTTP asks the database. */

import type { Tenure } from "@tenure/core"
import { startTenure } from "../database.ts"
import type { Section } from "../measurement.ts"
import { countStatements } from "../statements.ts"

const utf8 = new TextEncoder()

// Claims and sweeps take place meanwhile, but not beside every request.
const requests = 20

/** A client that extends a membership. */
const makeClient = async (
  { apiKeys, handle, memberships }: Tenure,
  further: () => Readonly<Record<string, string>>,
) => {
  await memberships.createProject("trips")
  await memberships.grant({ projectId: "trips", userId: "1", endDate: "2027-01-01T00:00:00.000Z" })
  const { token } = await apiKeys.issue({ projects: ["trips"] })
  return async (): Promise<void> => {
    const { status } = await handle({
      method: "PATCH",
      path: "/v2/projects/trips/memberships/1/extend",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...further(),
      },
      body: { _tag: "Bytes", bytes: utf8.encode('{"extend":"2099-01-01T00:00:00.000Z"}') },
      remoteAddress: "203.0.113.7",
    })
    if (status !== 200) throw new Error(`an extension was answered with ${status}`)
  }
}

/** Counts the statements of an extension over HTTP, in the steady state. */
const countRoundTrips = async (
  database: string,
  further = (): Readonly<Record<string, string>> => ({}),
): Promise<number> => {
  const { close, count, url } = await countStatements(database)
  const tenure = await startTenure(url)
  const extend = await makeClient(tenure, further)
  const counts: Array<number> = []
  while (counts.length < requests) {
    const before = count()
    await extend()
    counts.push(count() - before)
  }
  await tenure.close()
  close()
  return Math.min(...counts)
}

/** Statements of one request. */
export const roundTrips: Section = {
  name: "round-trips",
  measure: async ({ database }) => {
    const { url } = await database()
    const target = { of: "figure", atLeast: 1, atMost: 2, always: true } as const
    return {
      rows: [
        {
          measured: "round trips of one extension over HTTP",
          unit: "",
          figure: await countRoundTrips(url),
          target,
        },
        {
          measured: "round trips of one with an idempotency key",
          unit: "",
          figure: await countRoundTrips(url, () => ({ "idempotency-key": crypto.randomUUID() })),
          target,
        },
      ],
    }
  },
}
