/** The stores to compare, each below its own Tenure, on one clock that only the steps move. */

import { PgClient } from "@effect/sql-pg"
import type { Promises, TenureOptions } from "@tenure/core"
import { promisesFromEffect, tenureLayer } from "@tenure/core/effect"
import { makeDecideAnnouncement, reminderLeads } from "@tenure/core/internal"
import {
  type DecideAnnouncement,
  MembershipStore,
  Millis,
  Outbox,
  type StorePorts,
  type WebhookId,
  announcementsOf,
} from "@tenure/core/store"
import { type TransportRequest, WebhookTransport } from "@tenure/core/transport"
import { client as embeddedClient } from "@tenure/embedded"
import { memory } from "@tenure/memory"
import { postgresLayer } from "@tenure/postgres"
import * as Clock from "effect/Clock"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import { emptyTables } from "../../../embedded/test/emptying.ts"
import { requestOf } from "../../simulation/http.ts"
import { makeClock } from "../../timers.ts"
import { adminToken, token, words } from "../vocabulary.ts"
import { type Request, members, operatorToken, projects, receivers } from "./steps.ts"

/** The time, in milliseconds since the epoch, for the process and for all stores. */
export interface Time {
  now: number
}

/** A store. It is opened once, and is emptied for each run. */
export interface Store {
  readonly name: string
  readonly stores: Layer.Layer<StorePorts, unknown>
  readonly empty: () => Promise<void>
  readonly setTime: (now: number) => Promise<void>
  readonly close: () => Promise<void>
}

/** The answer to a request. */
interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** Tenure on a store. */
export interface Side {
  readonly name: string
  readonly send: (request: Request) => Promise<Reply>
  /** Sets the time. */
  readonly setTime: (now: number) => Promise<void>
  /**
   * Ends the pauses that are over, and postpones the alarms that have come until a time, so that one sweep
   * announces their ends: a store may turn to bulk-extended members later than to others, and the order
   * between two sweeps is up to it.
   */
  readonly gather: (until: number) => Promise<void>
  /** Announces the ends that have come. */
  readonly announce: () => Promise<void>
  /**
   * Delivers what is due, and announces and disables failing webhooks at the end, in the order of their names:
   * attempts for several ones are made at the same time, and end in any order. Returns what was sent.
   */
  readonly deliver: (
    nameOf: (webhook: WebhookId) => string,
  ) => Promise<ReadonlyArray<TransportRequest>>
  readonly close: () => Promise<void>
}

interface Announcing {
  readonly webhook: WebhookId
  readonly settle: Effect.Effect<unknown, unknown>
}

/**
 * Keeps the settlements that announce or disable failing webhooks, and makes none. Each webhook has one
 * attempt at a time.
 */
const keeping = (
  stores: Layer.Layer<StorePorts, unknown>,
  kept: Array<Announcing>,
): Layer.Layer<StorePorts, unknown> =>
  Layer.effect(
    Outbox,
    Outbox.use((outbox) =>
      Effect.succeed({
        ...outbox,
        claim: (options) =>
          outbox.claim({ ...options, perWebhook: { least: 1, most: 1 }, ahead: new Map() }),
        settle: (claim, settlement) => {
          const settle = outbox.settle(claim, settlement)
          if (announcementsOf(settlement).length === 0) return settle
          kept.push({ webhook: claim.webhook.webhookId, settle })
          return Effect.succeed("Settled" as const)
        },
      }),
    ),
  ).pipe(Layer.provideMerge(stores))

const nothing = async () => {}

/** The store in memory. */
export const inMemory: Store = {
  name: "memory",
  stores: memory(),
  empty: nothing,
  setTime: nothing,
  close: nothing,
}

/** Puts functions before PostgreSQL's that tell the time. */
const replaceClock = `
  DO $do$ BEGIN
    CREATE SCHEMA IF NOT EXISTS clock;
    CREATE TABLE IF NOT EXISTS clock.time (at timestamptz NOT NULL);
    INSERT INTO clock.time SELECT pg_catalog.now() WHERE NOT EXISTS (SELECT FROM clock.time);
    CREATE OR REPLACE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT at FROM clock.time';
    CREATE OR REPLACE FUNCTION clock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS 'SELECT at FROM clock.time';
    EXECUTE format('ALTER DATABASE %I SET search_path = clock, pg_catalog, public', current_database());
  END $do$
`

type Client = Layer.Layer<PgClient.PgClient, unknown>

/** Runs statements on a new connection. */
const execute = (client: Client, text: string): Promise<void> =>
  Effect.runPromise(
    Effect.asVoid(PgClient.PgClient.use((sql) => sql.unsafe(text))).pipe(Effect.provide(client)),
  )

/** Makes a store in a database whose clock is replaced. */
const onDatabase = async (name: string, client: Client): Promise<Store> => {
  await execute(client, replaceClock)
  const runtime = ManagedRuntime.make(client)
  const run = (text: string) =>
    runtime.runPromise(Effect.asVoid(PgClient.PgClient.use((sql) => sql.unsafe(text))))
  // PGlite's only session begins with another path.
  await run("SET search_path = clock, pg_catalog, public")
  return {
    name,
    stores: Layer.provide(postgresLayer(), Layer.effectContext(runtime.contextEffect)),
    empty: () => run(emptyTables),
    setTime: (now) => run(`UPDATE clock.time SET at = to_timestamp(${now / 1000}::numeric)`),
    close: () => runtime.dispose(),
  }
}

export const inFolder = (path: string): Promise<Store> =>
  onDatabase("embedded", embeddedClient({ path, durable: false }))

const clientOf = (url: string): Client =>
  PgClient.layer({ url: Redacted.make(url), maxConnections: 2, connectTimeout: "1 minute" })

/** The store on a PostgreSQL server, in a new database. */
export const onServer = async (url: string): Promise<Store> => {
  const database = `fuzz_${process.pid}`
  await execute(clientOf(url), `CREATE DATABASE ${database}`)
  const own = new URL(url)
  own.pathname = `/${database}`
  const store = await onDatabase("postgres", clientOf(own.href))
  return {
    ...store,
    close: async () => {
      await store.close()
      await execute(clientOf(url), `DROP DATABASE ${database} WITH (FORCE)`)
    },
  }
}

/** A clock that stands still, but whose timers run. */
const clockOf = (time: Time): Layer.Layer<never> =>
  Layer.effect(
    Clock.Clock,
    Clock.clockWith((real) =>
      Effect.succeed(
        makeClock(
          (duration) => real.sleep(duration),
          () => time.now,
        ),
      ),
    ),
  )

/** Randomness whose ids are in the order in which they are made, also within a millisecond. */
const cryptoInOrder = (): Layer.Layer<never> => {
  let count = 0
  return Layer.succeed(WebCrypto, {
    subtle: crypto.subtle,
    getRandomValues: crypto.getRandomValues.bind(crypto),
    randomUUID: () => `00000000-0000-4000-8000-${(count++).toString(16).padStart(12, "0")}`,
  })
}

// Delays have no spread.
const random = Layer.succeed(Random.Random, {
  nextIntUnsafe: () => 0,
  nextDoubleUnsafe: () => 0.5,
})

const high = { limit: 1_000_000, window: "1 minute" } as const

const leads = reminderLeads([Millis(86_400_000), Millis(3_600_000)])

const fill = async ({ apiKeys, memberships }: Promises): Promise<void> => {
  for (const projectId of projects) {
    await memberships.createProject(projectId)
    for (const userId of members) {
      const endDate = new Date(Date.UTC(2099, 0, Number(userId)))
      await memberships.grant({ projectId, userId, endDate })
    }
  }
  await apiKeys.issue({ projects: "all", token: adminToken, role: "admin" })
  await apiKeys.issue({ projects, token: operatorToken, role: "operator" })
  await apiKeys.issue({ projects: projects.slice(0, 1), token })
}

/** The header field with what the limits leave. */
export const remaining = "x-ratelimit-remaining"

const shownHeaders = words(`
  allow cache-control content-type idempotent-replayed retry-after upgrade www-authenticate
  x-ratelimit-limit ${remaining}
`)

/** Sends a request to a Tenure, without a server: the fuzzer of the hosts is about those. */
const send = async (
  { handle }: Promises,
  { body, headers, method, path }: Request,
): Promise<Reply> => {
  const response = await handle(requestOf(method, path, headers, body))
  const fields = new Headers(response.headers)
  const { body: sent } = response
  if (typeof sent !== "string") sent.close()
  return {
    status: response.status,
    headers: Object.fromEntries(shownHeaders.map((name) => [name, fields.get(name) ?? undefined])),
    body: typeof sent === "string" ? sent : "",
  }
}

/** Starts Tenure on a store that is emptied. */
export const openSide = async (store: Store, time: Time): Promise<Side> => {
  await store.setTime(time.now)
  const outgoing: Array<TransportRequest> = []
  const kept: Array<Announcing> = []
  const transport = Layer.succeed(WebhookTransport, {
    sendsHttpToNames: true,
    send: (request) =>
      Effect.sync(() => {
        outgoing.push(request)
        const status = receivers.get(request.url) ?? 404
        return { status, retryAfter: undefined, body: `status ${status}` }
      }),
  })
  const options: TenureOptions = {
    transport,
    rateLimits: { perKey: high, perAddress: high, burst: high },
    // The steps announce.
    expiry: false,
    webhooks: { dispatch: false, disableAfter: "3 hours", maxPerProject: 12 },
  }
  const runtime = ManagedRuntime.make(
    tenureLayer(options).pipe(
      Layer.provideMerge(keeping(store.stores, kept)),
      Layer.provideMerge(Layer.mergeAll(clockOf(time), random, cryptoInOrder(), Logger.layer([]))),
    ),
  )
  // The tables exist once the stores are open.
  await runtime.runPromise(Effect.void)
  await store.empty()
  const tenure = await runtime.runPromise(promisesFromEffect)
  const expiry = await runtime.runPromise(MembershipStore.use((one) => Effect.succeed(one.expiry)))
  if (expiry === undefined) throw new TypeError("the store announces no ends")
  const since = await runtime.runPromise(expiry.watch(leads))
  const decide = makeDecideAnnouncement({ leads, since })
  await fill(tenure)

  // Counting records which pauses are over, at the same time in all stores.
  const endPauses = MembershipStore.use((one) =>
    Effect.flatMap(one.listProjects({ after: undefined, limit: 100, within: "all" }), (all) =>
      Effect.forEach(all, ({ id }) => one.countEnds(id, { days: undefined, change: undefined })),
    ),
  )

  const sweep = async (by: DecideAnnouncement): Promise<void> => {
    const { isMore } = await runtime.runPromise(expiry.sweep(100, by))
    if (isMore) await sweep(by)
  }

  return {
    name: store.name,
    send: (request) => send(tenure, request),
    setTime: store.setTime,
    gather: async (until) => {
      await runtime.runPromise(endPauses)
      await sweep(() => ({ announcement: undefined, alarm: until }))
    },
    announce: () => sweep(decide),
    deliver: async (nameOf) => {
      outgoing.length = 0
      await tenure.flush()
      while (kept.length > 0) {
        const inOrder = kept.splice(0).toSorted((one, other) => {
          const [first, second] = [nameOf(one.webhook), nameOf(other.webhook)]
          return first === second ? 0 : first < second ? -1 : 1
        })
        for (const { settle } of inOrder) await runtime.runPromise(settle)
        await tenure.flush()
      }
      // A process adds its attempt counts to the store's before it reads them: here, before time passes.
      await tenure.activity()
      return [...outgoing]
    },
    close: () => runtime.dispose(),
  }
}
