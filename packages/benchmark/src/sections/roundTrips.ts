/** How often one request over HTTP asks the database. */

import * as PgClient from "@effect/sql-pg/PgClient"
import { Handler } from "@tenure/core/Handler"
import * as Tenure from "@tenure/core/Tenure"
import { layer } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { schema } from "../database.ts"
import type { Section } from "../measurement.ts"

const utf8 = new TextEncoder()

/** A client that reports the statements that it runs. */
const watched = (url: string, statements: Array<string>) =>
  PgClient.layerFrom(
    Effect.map(PgClient.make({ url: Redacted.make(url) }), (client) => {
      const unsafe: typeof client.unsafe = (sql, params) => {
        statements.push(sql)
        return client.unsafe(sql, params)
      }
      const watching = Object.assign(
        (...args: Parameters<typeof client>) => client(...args),
        client,
      )
      return Object.assign(watching, { unsafe, withoutTransforms: () => watching })
    }),
  )

// Claims and sweeps that run meanwhile are not part of the request.
const isOfRequest = (sql: string): boolean => /memberships|buckets|api_keys/.test(sql)

/** Counts the statements of an extension over HTTP, in the steady state. */
const countRoundTrips = (url: string): Promise<number> => {
  const statements: Array<string> = []
  const program = Effect.gen(function* () {
    const { apiKeys, memberships } = yield* Tenure.promises
    const { handle } = yield* Handler
    yield* Effect.promise(() => memberships.createProject("trips"))
    yield* Effect.promise(() =>
      memberships.grant({ projectId: "trips", userId: "1", endDate: "2027-01-01T00:00:00.000Z" }),
    )
    const { token } = yield* Effect.promise(() => apiKeys.issue({ projects: ["trips"] }))
    const request = handle({
      method: "PATCH",
      path: "/v2/projects/trips/memberships/1/extend",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: { _tag: "Bytes", bytes: utf8.encode('{"extend":"2099-01-01T00:00:00.000Z"}') },
      remoteAddress: "203.0.113.7",
    })
    yield* request
    const before = statements.filter(isOfRequest).length
    const { status } = yield* request
    if (status !== 200) return yield* Effect.die(`answered ${status}`)
    return statements.filter(isOfRequest).length - before
  })
  const services = Tenure.layer().pipe(
    Layer.provide(layer({ schema })),
    Layer.provide(watched(url, statements)),
  )
  return Effect.runPromise(Effect.provide(program, services))
}

/** Statements of one request. */
export const roundTrips: Section = {
  name: "round-trips",
  measure: async ({ database }) => ({
    rows: [
      {
        measured: "round trips of one extension over HTTP",
        unit: "",
        figure: await countRoundTrips((await database()).url),
        target: { of: "figure", atMost: 2, always: true },
      },
    ],
  }),
}
