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
import { Fixture, type Receiver, startReceiver } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest"
import { makeHeldClaims } from "../src/claims.ts"
import { postgresLayer } from "../src/index.ts"
import { clientLayer, emptied } from "./harness.ts"
import { blockedOn, holding } from "./locking.ts"

const schema = "presence"
const { occasion, p1 } = Fixture
const presenceWebhook = Fixture.makeWebhook(p1)
const ref = { projectId: p1, webhookId: presenceWebhook.id }

const delivered = {
  _tag: "Delivered",
  attempt: { at: 0, durationMillis: 1, result: { _tag: "Answered", status: 200, body: "" } },
} as const

const closing: Array<() => unknown> = []

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Stores that dispatch when they are told to, with an id of their own. */
const startStores = () => {
  const runtime = ManagedRuntime.make(
    Layer.provideMerge(Layer.fresh(postgresLayer({ schema })), clientLayer({ maxConnections: 3 })),
  )
  closing.push(() => runtime.dispose())
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
          ahead: ahead === 0 ? new Map() : new Map([[presenceWebhook.id, ahead]]),
          leaseMillis: 60_000,
        }),
      ),
    ).then(({ claims }) => claims)
  const sql = (statement: string) =>
    run(Effect.flatMap(PgClient.PgClient, (client) => client.unsafe(statement)))
  /** The ids of the dispatchers that the database knows. */
  const dispatchers = () =>
    run(
      Effect.flatMap(PgClient.PgClient, (client) =>
        client.unsafe<{ readonly id: string }>(`SELECT id FROM ${schema}.dispatchers`),
      ),
    ).then((rows) => rows.map(({ id }) => id))
  return { run, claim, dispatchers, sql }
}

type Dispatcher = ReturnType<typeof startStores>

let here: Dispatcher
const empty = emptied(schema)
beforeEach(async () => {
  await Effect.runPromise(empty)
  here = startStores()
})

/** Adds the webhook, and deliveries to it. */
const publish = (url = presenceWebhook.url, count = 1) =>
  here.run(
    Effect.gen(function* () {
      const outbox = yield* Outbox
      yield* (yield* MembershipStore).createProject(p1, occasion)
      yield* (yield* WebhookStore).add({ ...presenceWebhook, url }, 50, occasion)
      for (let index = 0; index < count; index++) yield* outbox.publish(Fixture.event(p1))
    }),
  )

const theDelivery = () =>
  here.run(
    Effect.map(
      Effect.flatMap(Outbox, (outbox) => outbox.deliveries(ref, { limit: 10 })),
      ([delivery]) => delivery,
    ),
  )

/** Moves everything that dispatchers have reported into the past, except that this one is alive. */
const letTimePass = () =>
  here.sql(`
    UPDATE ${schema}.dispatchers d
    SET since = d.since - interval '1 minute', seen_at = CASE
      WHEN (SELECT count(*) FROM ${schema}.deliveries e WHERE e.dispatcher = d.id) = 0
      THEN clock_timestamp() ELSE d.seen_at - interval '1 minute' END`)

/** Claims what the others have claimed, once they are silent. */
const takeOver = async (count = 1) => {
  const claims: Array<Claim> = []
  const take = async () => {
    await letTimePass()
    claims.push(...(await here.claim(count)))
    return claims.length
  }
  await expect.poll(take).toBe(count)
  return claims
}

/** A process with a dispatcher whose attempt is in flight, and the response that it waits for. */
const startProcess = async () => {
  const waiting: Array<ServerResponse> = []
  const receiver: Receiver = await startReceiver((response) => void waiting.push(response))
  closing.push(() => receiver.close())
  await publish(receiver.url)
  const program = fileURLToPath(new URL("dispatching.ts", import.meta.url))
  const args = ["-C", "@tenure/source", program, inject("databaseUrl"), schema]
  const child: ChildProcess = spawn(process.execPath, args, { stdio: "inherit" })
  closing.push(() => child.kill("SIGKILL"))
  await receiver.until(1)
  return { child, answer: () => waiting[0]?.writeHead(204).end() }
}

describe("the claims of a process that has fallen silent", () => {
  it("are given back long before their leases pass, and cannot be settled if it comes back", async () => {
    const { answer, child } = await startProcess()
    expect(await here.claim()).toEqual([])
    child.kill("SIGSTOP")
    const claims = await takeOver()
    expect(claims).toMatchObject([{ attemptNumber: 2 }])
    answer()
    child.kill("SIGCONT")
    child.kill("SIGTERM")
    await once(child, "exit")
    expect(await theDelivery()).toMatchObject({ state: "waiting", attempts: [] })
    for (const claim of claims) {
      const settling = Effect.flatMap(Outbox, (outbox) => outbox.settle(claim, delivered))
      expect(await here.run(settling)).toBe("Settled")
    }
    expect(await theDelivery()).toMatchObject({ state: "delivered", attempts: [{}] })
  })
})

describe("the claims of a process that has died", () => {
  it("are given back soon, also if the clock was ahead until then", async () => {
    const { child } = await startProcess()
    child.kill("SIGKILL")
    await once(child, "exit")
    await here.sql(
      `UPDATE ${schema}.deliveries SET next_attempt_at = next_attempt_at + interval '1 day'`,
    )
    await here.sql(`
      UPDATE ${schema}.dispatchers
      SET seen_at = seen_at + interval '1 day', since = since + interval '1 day', session = NULL`)
    const count = async () => (await here.claim()).length
    await expect.poll(count, { interval: 100 }).toBe(1)
  })
})

/** Has no dispatcher report for long enough to notice silence. */
const startReports = () => here.sql(`UPDATE ${schema}.dispatchers SET since = clock_timestamp()`)

describe("the claims of a process whose session has ended", () => {
  /** Waits until so many dispatchers have told their sessions. */
  const untilTold = (count: number) => {
    const told = () => here.sql(`SELECT FROM ${schema}.dispatchers WHERE session IS NOT NULL`)
    return expect.poll(told).toHaveLength(count)
  }

  it("are given back before its silence alone would count", async () => {
    const { child } = await startProcess()
    await untilTold(1)
    child.kill("SIGKILL")
    await once(child, "exit")
    const count = async () => {
      await startReports()
      return (await here.claim()).length
    }
    await expect.poll(count).toBe(1)
  })

  const late = "seen_at = seen_at - interval '1 second'"
  const ended = "session = gen_random_uuid()"

  /** Another dispatcher with a claim, and this one, both with sessions. */
  const startWithSessions = async () => {
    const there = startStores()
    await publish()
    expect(await there.claim()).toHaveLength(1)
    const [otherId = ""] = await there.dispatchers()
    expect(await here.claim()).toEqual([])
    await untilTold(2)
    return { there, otherId }
  }

  it("are given back once it has also missed reports", async () => {
    const { otherId } = await startWithSessions()
    const changed = async () => {
      await here.sql(`UPDATE ${schema}.dispatchers SET ${ended}, ${late} WHERE id = '${otherId}'`)
      await startReports()
      return here.claim()
    }
    await expect.poll(changed).toHaveLength(1)
  })

  it.each([
    ["it still reports", (id: string) => `SET ${ended} WHERE id = '${id}'`],
    ["its session goes on", (id: string) => `SET ${late} WHERE id = '${id}'`],
    ["it has none", (id: string) => `SET session = NULL, ${late} WHERE id = '${id}'`],
    ["all sessions have ended", () => `SET ${ended}, ${late}`],
    [
      "the server has been started since",
      (id: string) =>
        `SET ${ended}, ${late}, server_started_at = server_started_at - interval '1 hour' WHERE id = '${id}'`,
    ],
  ])("are left alone if %s", async (_, change) => {
    const { otherId } = await startWithSessions()
    // In one transaction, so that no report comes between.
    const goneAfter = (set: string) =>
      here.run(
        Effect.flatMap(PgClient.PgClient, (client) =>
          client.withTransaction(
            Effect.andThen(
              client.unsafe(`UPDATE ${schema}.dispatchers ${set}`),
              client.unsafe(
                `SELECT id FROM ${schema}.dispatchers_gone WHERE noticed_by <> '${otherId}'`,
              ),
            ),
          ),
        ),
      )
    for (let count = 0; count < 5; count++) expect(await goneAfter(change(otherId))).toEqual([])
  })

  it("are left alone while only its connection was cut, and its new session tells nothing at first", async () => {
    const { otherId, there } = await startWithSessions()
    await here.sql(`
      SELECT pg_terminate_backend(l.pid) FROM pg_locks l
      JOIN ${schema}.dispatchers d
        ON hashtextextended(d.session::text, 0) = (l.classid::bigint << 32 | l.objid::bigint)
      WHERE l.locktype = 'advisory' AND l.granted AND d.id = '${otherId}'`)
    const isTold = () =>
      there.sql(`SELECT FROM ${schema}.dispatchers WHERE id = '${otherId}' AND session IS NULL`)
    await expect.poll(async () => [await here.claim(), await isTold()]).toEqual([[], [{}]])
  })
})

describe("the claims of another dispatcher", () => {
  it("are left alone while it lives, and after the clock was set back for both", async () => {
    const there = startStores()
    await publish()
    expect(await there.claim()).toHaveLength(1)
    expect(await here.claim()).toEqual([])
    await here.sql(`
      UPDATE ${schema}.dispatchers
      SET seen_at = seen_at + interval '1 day', since = since - interval '1 day'`)
    for (let count = 0; count < 5; count++) expect(await here.claim()).toEqual([])
  })

  it("are left alone while it lives, and when the database stood still for both", async () => {
    const there = startStores()
    await publish()
    expect(await there.claim()).toHaveLength(1)
    expect(await here.claim()).toEqual([])
    await here.sql(`UPDATE ${schema}.dispatchers SET seen_at = seen_at - interval '1 minute'`)
    for (let count = 0; count < 5; count++) expect(await here.claim()).toEqual([])
  })
})

/** Has a dispatcher that is alone, has no claims, and so reports rarely. */
const startQuiet = async () => {
  await here.claim()
  const isQuiet = async () => {
    const rows = await here.sql(`SELECT FROM ${schema}.dispatchers WHERE is_quiet`)
    return rows.length === 1
  }
  await expect.poll(isQuiet).toBe(true)
  const [id] = await here.dispatchers()
  return { id, isQuiet }
}

/** Another dispatcher, which would have noticed long ago that one is gone. */
const startNoticing = async () => {
  const there = startStores()
  await there.claim()
  await here.sql(`UPDATE ${schema}.dispatchers SET since = since - interval '1 minute'`)
  return there
}

describe("a dispatcher that is alone and has no claims", () => {
  it("reports often again once it meets another", async () => {
    const { isQuiet } = await startQuiet()
    const there = startStores()
    await there.claim()
    await here.claim()
    await expect.poll(isQuiet).toBe(false)
    expect(await here.dispatchers()).toHaveLength(2)
  })

  it("keeps what it claims, however long ago its last report was", async () => {
    const { id, isQuiet } = await startQuiet()
    const there = await startNoticing()
    await publish()
    await here.sql(
      `UPDATE ${schema}.dispatchers SET seen_at = seen_at - interval '1 minute' WHERE id = '${id}'`,
    )
    expect(await here.claim()).toHaveLength(1)
    expect(await isQuiet()).toBe(false)
    for (let count = 0; count < 5; count++) expect(await there.claim()).toEqual([])
  })

  it("keeps what it claims while another notices its silence", async () => {
    const { id } = await startQuiet()
    const there = await startNoticing()
    await publish()
    await here.sql(
      `UPDATE ${schema}.dispatchers SET seen_at = now() - interval '1 minute' WHERE id = '${id}'`,
    )
    // It has claimed and not committed. The other can read deliveries meanwhile, but change none.
    const claimed = `DO $$ BEGIN
      UPDATE ${schema}.dispatchers SET seen_at = clock_timestamp(), is_quiet = false WHERE id = '${id}';
      UPDATE ${schema}.deliveries
      SET state = 'leased', dispatcher = '${id}', lease = nextval('${schema}.leases'),
          next_attempt_at = clock_timestamp() + interval '1 hour', claim_count = 1;
      LOCK TABLE ${schema}.deliveries IN SHARE ROW EXCLUSIVE MODE;
    END $$`
    const claiming = await here.run(
      holding(
        claimed,
        Effect.gen(function* () {
          const claims = there.claim()
          yield* blockedOn(schema)
          // In an object, so that the transaction ends first.
          return { claims }
        }),
      ),
    )
    expect(await claiming.claims).toEqual([])
    expect(await here.dispatchers()).toContain(id)
  })
})

describe("the removal of a webhook, or its disabling by request,", () => {
  const nextStop = Effect.flatMap(Outbox, (outbox) =>
    Effect.repeat(outbox.nextChange, { until: ({ _tag }) => _tag === "Stopped" }),
  )
  const stopped = { _tag: "Stopped", webhookId: presenceWebhook.id }

  it.each([
    ["DELETE FROM webhooks"],
    ["UPDATE webhooks SET disabled_at = now(), disabled_by = 'request'"],
  ])("is told again for as long as its deliveries are claimed: %s", async (statement) => {
    await publish()
    expect(await here.claim()).toHaveLength(1)
    await here.sql(statement.replace("webhooks", `${schema}.webhooks`))
    for (let count = 0; count < 2; count++) expect(await here.run(nextStop)).toEqual(stopped)
  })

  it("is told to a process whose claims others have taken over: its attempts are in flight", async () => {
    const there = startStores()
    await publish()
    expect(await there.claim()).toHaveLength(1)
    await here.sql(`UPDATE ${schema}.deliveries SET state = 'ready', dispatcher = NULL`)
    await here.sql(`DELETE FROM ${schema}.webhooks`)
    expect(await there.run(nextStop)).toEqual(stopped)
  })

  it("concerns the claims that are neither settled nor have lapsed", async () => {
    await publish()
    const claims = await here.claim()
    const held = makeHeldClaims()
    held.add(claims, 1000)
    expect(held.webhooks(999)).toEqual([presenceWebhook.id])
    expect(held.webhooks(1000)).toEqual([])
    held.add(claims, 1000)
    for (const claim of claims) held.delete(claim)
    expect(held.webhooks(0)).toEqual([])
  })
})

/** Lets each process claim from all lanes, as when the others have claimed nothing for a while. */
const freeLanes = () => here.sql(`UPDATE ${schema}.dispatchers SET busy_at = to_timestamp(0)`)

/** Adds a webhook in each lane, with deliveries to it. */
const publishInLanes = () =>
  here.run(
    Effect.gen(function* () {
      const outbox = yield* Outbox
      yield* (yield* MembershipStore).createProject(p1, occasion)
      const webhooks = yield* WebhookStore
      for (const digit of "0123456789abcdef") {
        const id = WebhookId(digit + presenceWebhook.id.slice(1))
        yield* webhooks.add({ ...presenceWebhook, id }, 50, occasion)
      }
      yield* outbox.publish(Fixture.event(p1))
    }),
  )

const digitsOf = (claims: ReadonlyArray<Claim>): string =>
  claims
    .map(({ webhook }) => webhook.webhookId.charAt(0))
    .toSorted()
    .join("")

describe("processes that claim at the same time", () => {
  /** Two that know of each other, with a delivery in each lane. Returns one, and its id. */
  const startTwo = async () => {
    const there = startStores()
    await publishInLanes()
    await there.claim(0, 1)
    const [owner] = await here.dispatchers()
    await here.claim(0, 1)
    return { there, id: owner }
  }

  const takeBack = () =>
    here.sql(`UPDATE ${schema}.deliveries SET state = 'ready', lease = NULL, dispatcher = NULL`)

  /** Claims while both are busy; again if that took so long that they no longer are. */
  const whileBusy = async <A>(claim: () => Promise<A>): Promise<A> => {
    await takeBack()
    const begin = performance.now()
    await here.sql(`UPDATE ${schema}.dispatchers SET busy_at = clock_timestamp()`)
    const claimed = await claim()
    return performance.now() - begin < 150 ? claimed : whileBusy(claim)
  }

  it("have half of the webhooks each while both are busy", async () => {
    const { there } = await startTwo()
    const halves = await whileBusy(async () => [await here.claim(0, 16), await there.claim(0, 16)])
    expect(halves.map(digitsOf).toSorted()).toEqual(["01234567", "89abcdef"])
  })

  it("do not wait for each other", async () => {
    const { id, there } = await startTwo()
    const claimed = await there.run(
      Effect.flatMap(PgClient.PgClient, (client) =>
        client.withTransaction(
          Effect.andThen(
            client.unsafe(`SELECT ${schema}.lock_lanes('${id}')`),
            Effect.promise(() => whileBusy(() => here.claim(0, 16))),
          ),
        ),
      ),
    )
    expect(claimed).toHaveLength(8)
  })

  it("take the webhooks of one that has no room any more", async () => {
    const { there } = await startTwo()
    await takeBack()
    await freeLanes()
    expect(digitsOf(await there.claim(0, 16))).toBe("0123456789abcdef")
  })
})

describe("claims that wait in a process", () => {
  it("keep other processes from claiming deliveries of the same webhook", async () => {
    const there = startStores()
    await publish(presenceWebhook.url, 20)
    expect(await there.claim(6)).toHaveLength(10)
    await freeLanes()
    expect(await here.claim(6)).toEqual([])
  })

  it("are not made while another process has claims of the webhook, which share its concurrency", async () => {
    const there = startStores()
    await publish(presenceWebhook.url, 20)
    expect(await there.claim(0, 1)).toHaveLength(1)
    await freeLanes()
    expect(await here.claim(6)).toHaveLength(3)
    await freeLanes()
    expect(await there.claim(6)).toEqual([])
  })

  it("are given back with the others when the process is gone", async () => {
    const there = startStores()
    await publish(presenceWebhook.url, 10)
    expect(await there.claim(6)).toHaveLength(10)
    expect(await takeOver(10)).toHaveLength(10)
  })
})

describe("a claim whose answer was lost", () => {
  it("is made again by the next one, and does not count as an attempt", async () => {
    await publish()
    expect(await here.claim()).toHaveLength(1)
    expect(await here.claim()).toEqual([])
    // The database has made a claim of which this dispatcher knows nothing.
    await here.sql(`UPDATE ${schema}.deliveries SET lease = nextval('${schema}.leases')`)
    expect(await here.claim()).toMatchObject([{ attemptNumber: 1 }])
  })
})
