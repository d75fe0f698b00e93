/** The store passes the conformance suite, and fails soon while its database does not answer. */

import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { expect } from "@effect/vitest"
import { MembershipStore, StoreUnavailable } from "@tenure/core/store"
import { Fixture, storeSuite } from "@tenure/testing/conformance"
import { startPostgres } from "@tenure/testing/postgres-server"
import * as Effect from "effect/Effect"
import { afterAll, describe } from "vitest"
import { type Change, changesOf, harnessOn, storesOn, testOn } from "./stores.ts"

const { change, in2029, context, p1, u1, u2 } = Fixture

const server = await startPostgres({ settings: { fsync: "off" } })
afterAll(() => server.stop())

storeSuite("subscriptions", { ...harnessOn(server.url), runs: 15 })

const test = testOn({ layer: storesOn(server.url) })

/** Sends a signal to all database processes. */
const signal = (name: "STOP" | "CONT") =>
  Effect.sync(() => {
    const [pid = ""] = readFileSync(`${server.dataDirectory}/postmaster.pid`, "utf8").split("\n")
    const children = execFileSync("ps", ["-o", "pid=", "--ppid", pid], { encoding: "utf8" })
    for (const one of [pid, ...children.trim().split(/\s+/)])
      process.kill(Number(one), `SIG${name}`)
  })

describe("while the database does not answer", () => {
  test(
    "every operation soon fails with StoreUnavailable, and succeeds again afterwards",
    Effect.gen(function* () {
      const store = yield* MembershipStore
      yield* signal("STOP")
      const all: ReadonlyArray<Change> = [
        ...changesOf(store),
        store.createProject(p1, context),
        store.find(p1, u1),
        store.list(p1, { after: undefined, limit: 1 }),
        store.history(p1, { userId: undefined, limit: 1 }),
      ]
      const began = performance.now()
      const errors = yield* Effect.forEach(all, (one) => Effect.flip(one), {
        concurrency: "unbounded",
      })
      // It takes about a second. Waiting for the database would take thirty.
      expect(performance.now() - began).toBeLessThan(10_000)
      for (const error of errors) expect(error).toBeInstanceOf(StoreUnavailable)
      yield* signal("CONT")
      expect((yield* Effect.eventually(store.find(p1, u2))).userId).toBe(u2)
      yield* Effect.eventually(store.extend({ ...change(p1), userId: u2, endDate: in2029 }))
      expect((yield* store.find(p1, u2)).endDate).toBe(in2029)
    }).pipe(Effect.ensuring(signal("CONT"))),
  )
})
