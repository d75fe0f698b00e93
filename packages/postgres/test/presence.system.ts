/** Dispatchers that are gone, or that seem to be. */

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import type { ServerResponse } from "node:http"
import { fileURLToPath } from "node:url"
import { PgClient } from "@effect/sql-pg"
import {
  type Claim,
  MembershipStore,
  Outbox,
  type StorePorts,
  WebhookId,
  WebhookStore,
} from "@tenure/core/store"
import { Fixture, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { beforeEach, describe, expect, inject, it, onTestFinished } from "vitest"
import { makeHeldClaims } from "../src/claims.ts"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, duringSteps, emptied, sql, waitingOn } from "./harness.ts"

const schema = "presence"
const [dispatchers, deliveries, leases] = [
  `${schema}.dispatchers`,
  `${schema}.deliveries`,
  `${schema}.leases`,
]
const { context, p1 } = Fixture
const webhook = Fixture.makeWebhook(p1)
const ref = { projectId: p1, webhookId: webhook.id }

/** Stores that dispatch when they are told to, with their own id. */
const startStores = () => {
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(Layer.fresh(postgresLayer({ schema })), clientLayer({ maxConnections: 3 })),
  )
  onTestFinished(() => runtime.dispose())
  const run = <A, E>(work: Effect.Effect<A, E, StorePorts | PgClient.PgClient>): Promise<A> =>
    runtime.runPromise(work)
  const claim = (ahead = 0, limit = 10) =>
    run(
      Effect.flatMap(Outbox, (outbox) =>
        outbox.claim({
          limit,
          failing: 10,
          perWebhook: { least: 4, most: 4 },
          perProject: 100,
          ahead: ahead === 0 ? new Map() : new Map([[webhook.id, ahead]]),
          leaseMillis: 60_000,
        }),
      ),
    ).then(({ claims }) => claims)
  return { run, claim, sql: (statement: string) => run(sql<{ readonly id: string }>(statement)) }
}

let here: ReturnType<typeof startStores>
const empty = emptied(schema)
beforeEach(() => Effect.runPromise(empty))
const start = () => {
  here = startStores()
  return here
}

/** Changes what all dispatchers have reported. */
const report = (set: string) => here.sql(`UPDATE ${dispatchers} SET ${set}`)

/** The dispatchers' ids that the database knows. */
const idsOfDispatchers = async () =>
  (await here.sql(`SELECT id FROM ${dispatchers}`)).map(({ id }) => id)

/** Adds the webhook, and deliveries to it. */
const publish = (url = webhook.url, count = 1) =>
  here.run(
    Effect.gen(function* () {
      yield* (yield* MembershipStore).createProject(p1, context)
      yield* (yield* WebhookStore).add({ ...webhook, url }, 50, context)
      const outbox = yield* Outbox
      for (let index = 0; index < count; index++) yield* outbox.publish(Fixture.event(p1))
    }),
  )

/** Two dispatchers that know each other. The other one has claimed the only delivery. */
const startTwo = async () => {
  start()
  const there = startStores()
  await publish()
  expect(await there.claim()).toHaveLength(1)
  const [otherId = ""] = await idsOfDispatchers()
  expect(await here.claim()).toEqual([])
  return { there, otherId }
}

const expectNoClaim = async (claim = here.claim) => {
  for (let count = 0; count < 5; count++) expect(await claim()).toEqual([])
}

/** Claims what the others have claimed, once they are silent: time passes for all but this dispatcher. */
const takeOver = async (count = 1) => {
  const claims: Array<Claim> = []
  const take = async () => {
    await here.sql(`
      UPDATE ${dispatchers} d
      SET since = d.since - interval '1 minute', seen_at = CASE
        WHEN (SELECT count(*) FROM ${leases} e WHERE e.dispatcher = d.id) = 0
        THEN clock_timestamp() ELSE d.seen_at - interval '1 minute' END`)
    claims.push(...(await here.claim(count)))
    return claims.length
  }
  await expect.poll(take).toBe(count)
  return claims
}

/** Has no dispatcher report for long enough to notice silence. */
const claimBeforeSilence = async () => {
  await report("since = clock_timestamp()")
  return here.claim()
}

/** Waits until so many dispatchers have told their sessions. */
const untilTold = (count: number) =>
  expect
    .poll(() => here.sql(`SELECT FROM ${dispatchers} WHERE session IS NOT NULL`))
    .toHaveLength(count)

/** A process with a dispatcher whose attempt is in flight, and the response that it waits for. */
const startProcess = async () => {
  start()
  const waiting: Array<ServerResponse> = []
  const receiver = await startReceiver((response) => void waiting.push(response))
  onTestFinished(() => receiver.close())
  await publish(receiver.url)
  const program = fileURLToPath(new URL("dispatching.ts", import.meta.url))
  const args = ["-C", "@tenure/source", program, inject("databaseUrl"), schema]
  const child: ChildProcess = spawn(process.execPath, args, { stdio: "inherit" })
  onTestFinished(() => void child.kill("SIGKILL"))
  await receiver.until(1)
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await once(child, "exit")
  }
  return { child, end, answer: () => waiting[0]?.writeHead(204).end() }
}

describe("the claims of a process", () => {
  it("that has fallen silent are given back long before their leases pass, and cannot be settled if it comes back", async () => {
    const { answer, child, end } = await startProcess()
    expect(await here.claim()).toEqual([])
    child.kill("SIGSTOP")
    const claims = await takeOver()
    expect(claims).toMatchObject([{ attemptNumber: 2 }])
    answer()
    child.kill("SIGCONT")
    await end("SIGTERM")
    const listed = Effect.flatMap(Outbox, (outbox) => outbox.deliveries(ref, { limit: 10 }))
    expect(await here.run(listed)).toMatchObject([{ state: "waiting", attempts: [] }])
    const result = { _tag: "Answered", status: 200, body: "" } as const
    const delivered = { _tag: "Delivered", attempt: { at: 0, durationMillis: 1, result } } as const
    for (const claim of claims) {
      const settling = Effect.flatMap(Outbox, (outbox) => outbox.settle(claim, delivered))
      expect(await here.run(settling)).toBe("Settled")
    }
    expect(await here.run(listed)).toMatchObject([{ state: "delivered", attempts: [{}] }])
  })

  it("that has died are given back soon, also if the clock was ahead until then", async () => {
    const { end } = await startProcess()
    await end("SIGKILL")
    const ahead = (column: string) => `${column} = ${column} + interval '1 day'`
    await here.sql(`UPDATE ${deliveries} SET ${ahead("next_attempt_at")}`)
    await report(`${ahead("seen_at")}, ${ahead("since")}, session = NULL`)
    await expect.poll(() => here.claim(), { interval: 100 }).toHaveLength(1)
  })

  it("whose session has ended are given back before its silence alone would count", async () => {
    const { end } = await startProcess()
    await untilTold(1)
    await end("SIGKILL")
    await expect.poll(claimBeforeSilence).toHaveLength(1)
  })
})

describe("the claims of a dispatcher whose session has ended", () => {
  const late = "seen_at = seen_at - interval '1 second'"
  const ended = "session = gen_random_uuid()"

  it("are given back once it has also missed reports", async () => {
    const { otherId } = await startTwo()
    await untilTold(2)
    const changed = async () => {
      await report(`${ended}, ${late} WHERE id = '${otherId}'`)
      return claimBeforeSilence()
    }
    await expect.poll(changed).toHaveLength(1)
  })

  it.each([
    ["it still reports", `${ended} WHERE id = $id`],
    ["its session goes on", `${late} WHERE id = $id`],
    ["it has none", `session = NULL, ${late} WHERE id = $id`],
    ["all sessions have ended", `${ended}, ${late}`],
    [
      "the server has been started since",
      `${ended}, ${late}, server_started_at = server_started_at - interval '1 hour' WHERE id = $id`,
    ],
  ])("are left alone if %s", async (_, set) => {
    const { otherId } = await startTwo()
    await untilTold(2)
    const id = `'${otherId}'`
    // In one transaction, so that no report comes between.
    const goneAfter = PgClient.PgClient.use((client) =>
      client.withTransaction(
        Effect.andThen(
          sql(`UPDATE ${dispatchers} SET ${set.replace("$id", id)}`),
          sql(`SELECT id FROM ${schema}.dispatchers_gone WHERE noticed_by <> ${id}`),
        ),
      ),
    )
    for (let count = 0; count < 5; count++) expect(await here.run(goneAfter)).toEqual([])
  })

  it("are left alone while only its connection was cut, and its new session tells nothing at first", async () => {
    const { otherId, there } = await startTwo()
    await untilTold(2)
    await here.sql(`
      SELECT pg_terminate_backend(l.pid) FROM pg_locks l
      JOIN ${dispatchers} d
        ON hashtextextended(d.session::text, 0) = (l.classid::bigint << 32 | l.objid::bigint)
      WHERE l.locktype = 'advisory' AND l.granted AND d.id = '${otherId}'`)
    const isTold = () =>
      there.sql(`SELECT FROM ${dispatchers} WHERE id = '${otherId}' AND session IS NULL`)
    await expect.poll(async () => [await here.claim(), await isTold()]).toEqual([[], [{}]])
  })
})

it.each([
  [
    "after the clock was set back for both",
    "seen_at = seen_at + interval '1 day', since = since - interval '1 day'",
  ],
  ["when the database stood still for both", "seen_at = seen_at - interval '1 minute'"],
])("the claims of another dispatcher are left alone while it lives, and %s", async (_, set) => {
  await startTwo()
  await report(set)
  await expectNoClaim()
})

describe("a dispatcher that is alone and has no claims, and so reports rarely,", () => {
  const isQuiet = () => here.sql(`SELECT id FROM ${dispatchers} WHERE is_quiet`)

  /** Returns its id. */
  const startQuiet = async () => {
    await start().claim()
    await expect.poll(isQuiet).toHaveLength(1)
    const [id = ""] = await idsOfDispatchers()
    return id
  }

  /** Another dispatcher, which would have noticed long ago that one is gone. */
  const startNoticing = async () => {
    const there = startStores()
    await there.claim()
    await report("since = since - interval '1 minute'")
    return there
  }

  it("reports often again once it meets another", async () => {
    await startQuiet()
    await startStores().claim()
    await here.claim()
    await expect.poll(isQuiet).toEqual([])
    expect(await idsOfDispatchers()).toHaveLength(2)
  })

  it("keeps what it claims, however long ago its last report was", async () => {
    const id = await startQuiet()
    const there = await startNoticing()
    await publish()
    await report(`seen_at = seen_at - interval '1 minute' WHERE id = '${id}'`)
    expect(await here.claim()).toHaveLength(1)
    expect(await isQuiet()).not.toContainEqual({ id })
    await expectNoClaim(there.claim)
  })

  it("keeps what it claims while another notices its silence", async () => {
    const id = await startQuiet()
    const there = await startNoticing()
    await publish()
    await report(`seen_at = now() - interval '1 minute' WHERE id = '${id}'`)
    // It has claimed and not committed. The other can read leases meanwhile, but change none.
    const claimed = `DO $$ BEGIN
      UPDATE ${dispatchers} SET seen_at = clock_timestamp(), is_quiet = false WHERE id = '${id}';
      INSERT INTO ${leases} (webhook_id, id, dispatcher, until, positions)
      SELECT webhook_id, nextval('${schema}.lease_ids'), '${id}', clock_timestamp() + interval '1 hour', ARRAY[position] FROM ${deliveries};
      LOCK TABLE ${leases} IN SHARE ROW EXCLUSIVE MODE;
    END $$`
    const claiming = await here.run(
      duringSteps(sql(claimed), function* () {
        const claims = there.claim()
        yield* waitingOn(schema)
        // In an object, so that the transaction ends first.
        return { claims }
      }),
    )
    expect(await claiming.claims).toEqual([])
    expect(await idsOfDispatchers()).toContain(id)
  })
})

describe("the removal of a webhook, or its disabling by request,", () => {
  const nextStop = Effect.flatMap(Outbox, (outbox) =>
    Effect.repeat(outbox.nextChange, { until: ({ _tag }) => _tag === "Stopped" }),
  )
  const stopped = { _tag: "Stopped", webhookId: webhook.id }

  it.each([
    `DELETE FROM ${schema}.webhooks`,
    `UPDATE ${schema}.webhooks SET disabled_at = now(), disabled_by = 'request'`,
  ])("is told again for as long as its deliveries are claimed: %s", async (statement) => {
    start()
    await publish()
    expect(await here.claim()).toHaveLength(1)
    await here.sql(statement)
    for (let count = 0; count < 2; count++) expect(await here.run(nextStop)).toEqual(stopped)
  })

  it("is told to a process whose claims others have taken over: its attempts are in flight", async () => {
    const { there } = await startTwo()
    await here.sql(`DELETE FROM ${leases}`)
    await here.sql(`DELETE FROM ${schema}.webhooks`)
    expect(await there.run(nextStop)).toEqual(stopped)
  })

  it("concerns the claims that are neither settled nor have lapsed", async () => {
    start()
    await publish()
    const claims = await here.claim()
    const held = makeHeldClaims()
    const addAll = () => claims.forEach((claim) => held.add(claim, 1000, false))
    addAll()
    expect([held.webhooks(999), held.webhooks(1000)]).toEqual([[webhook.id], []])
    addAll()
    for (const claim of claims) held.delete(claim)
    expect(held.webhooks(0)).toEqual([])
  })
})

/** Lets each process claim from all lanes, as when the others have claimed nothing for a while. */
const freeLanes = () => report("busy_at = to_timestamp(0)")

describe("processes that claim at the same time", () => {
  const digits = "0123456789abcdef"

  /** Two that know each other, with a delivery in each lane. Returns one, and its id. */
  const startInLanes = async () => {
    start()
    const there = startStores()
    await here.run(
      Effect.gen(function* () {
        yield* (yield* MembershipStore).createProject(p1, context)
        const webhooks = yield* WebhookStore
        for (const digit of digits) {
          const id = WebhookId(digit + webhook.id.slice(1))
          yield* webhooks.add({ ...webhook, id }, 50, context)
        }
        yield* (yield* Outbox).publish(Fixture.event(p1))
      }),
    )
    await there.claim(0, 1)
    const [id] = await idsOfDispatchers()
    await here.claim(0, 1)
    return { there, id }
  }

  const digitsOf = (claims: ReadonlyArray<Claim>): string =>
    claims
      .map((claim) => claim.webhook.webhookId.charAt(0))
      .toSorted()
      .join("")

  const takeBack = () => here.sql(`DELETE FROM ${leases}`)

  /** Claims while both are busy; again if that took so long that they no longer are. */
  const whileBusy = async <A>(claim: () => Promise<A>): Promise<A> => {
    await takeBack()
    const begin = performance.now()
    await report("busy_at = clock_timestamp()")
    const claimed = await claim()
    return performance.now() - begin < 150 ? claimed : whileBusy(claim)
  }

  it("have half of the webhooks each while both are busy", async () => {
    const { there } = await startInLanes()
    const halves = await whileBusy(async () => [await here.claim(0, 16), await there.claim(0, 16)])
    expect(halves.map(digitsOf).toSorted()).toEqual(["01234567", "89abcdef"])
  })

  it("do not wait for each other", async () => {
    const { id, there } = await startInLanes()
    const claiming = Effect.promise(() => whileBusy(() => here.claim(0, 16)))
    const locked = PgClient.PgClient.use((client) =>
      client.withTransaction(Effect.andThen(sql(`SELECT ${schema}.lock_lanes('${id}')`), claiming)),
    )
    // Otherwise it takes the other's lanes, which would have claimed nothing for a while.
    await report("busy_at = clock_timestamp()")
    expect(await there.run(locked)).toHaveLength(8)
  })

  it("take the webhooks of one that has no room any more", async () => {
    const { there } = await startInLanes()
    await takeBack()
    await freeLanes()
    expect(digitsOf(await there.claim(0, 16))).toBe(digits)
  })
})

describe("claims that wait in a process", () => {
  it("keep other processes from claiming deliveries of the same webhook, and are given back when it is gone", async () => {
    const there = startStores()
    start()
    await publish(webhook.url, 20)
    expect(await there.claim(6)).toHaveLength(10)
    await freeLanes()
    expect(await here.claim(6)).toEqual([])
    await here.sql(`DELETE FROM ${deliveries} WHERE position NOT IN (SELECT ${schema}.leased())`)
    expect(await takeOver(10)).toHaveLength(10)
  })

  it("are not made while another process has claims of the webhook, which share its concurrency", async () => {
    const there = startStores()
    start()
    await publish(webhook.url, 20)
    expect(await there.claim(0, 1)).toHaveLength(1)
    await freeLanes()
    expect(await here.claim(6)).toHaveLength(3)
    await freeLanes()
    expect(await there.claim(6)).toEqual([])
  })
})

it("a claim whose answer was lost is made again by the next one, and does not count as an attempt", async () => {
  start()
  await publish()
  expect(await here.claim()).toHaveLength(1)
  expect(await here.claim()).toEqual([])
  // The database has made a claim that this dispatcher does not know.
  await here.sql(`UPDATE ${leases} SET id = nextval('${schema}.lease_ids')`)
  expect(await here.claim()).toMatchObject([{ attemptNumber: 1 }])
})
