/** Ways to break the system on purpose: the simulation has to find each one. */

import type { ClientOptions } from "@tenure/client"
import {
  type Claim,
  type DueMembership,
  type EndDate,
  FeedStore,
  MembershipStore,
  Millis,
  Outbox,
  type Pause,
  type ProjectId,
  RateLimitStore,
  type StorePorts,
  WebhookStore,
  completeEvent,
} from "@tenure/core/store"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Random } from "../faults/random.ts"

/** How something is broken on purpose. */
export interface Sabotage {
  readonly name: string
  /** The invariant that it breaks. */
  readonly invariant: string
  /** Within how many seeds, from the first on, the simulation finds it. */
  readonly within: number
  readonly stores?: (
    stores: Context.Context<StorePorts>,
    choose: Random,
  ) => Context.Context<StorePorts>
  /** Breaks a client by what it is given. */
  readonly client?: (options: ClientOptions, choose: Random) => ClientOptions
}

/** Replaces a port's operations. */
const breaking =
  <Port extends StorePorts, Service extends object>(
    port: Context.Key<Port, Service>,
    replace: (store: Service, choose: Random) => Partial<Service>,
  ): NonNullable<Sabotage["stores"]> =>
  (stores, choose) => {
    const store = Context.get(stores, port)
    return Context.add(stores, port, { ...store, ...replace(store, choose) })
  }

type Fetch = typeof globalThis.fetch

/** Replaces what a client sends its requests by. */
const sending =
  (replace: (send: Fetch, choose: Random) => Fetch): NonNullable<Sabotage["client"]> =>
  (options, choose) => ({ ...options, fetch: replace(options.fetch ?? fetch, choose) })

const keyName = "idempotency-key"

const fabricate = (status: number, body: object): Response =>
  new Response(JSON.stringify({ request_id: "none", ...body }), { status })

const notFound = (): Response =>
  fabricate(404, {
    ok: false,
    error: { error_code: "MEMBERSHIP_NOT_FOUND", message: "There is none." },
  })

const sweepOnly = (
  { expiry }: MembershipStore["Service"],
  spoil: (sweep: NonNullable<typeof expiry>["sweep"]) => NonNullable<typeof expiry>["sweep"],
): Pick<MembershipStore["Service"], "expiry"> => ({
  expiry: expiry && { ...expiry, sweep: spoil(expiry.sweep) },
})

/** Decides on announcements as if members were otherwise. */
const decidingBy = (wrong: Partial<DueMembership>) =>
  breaking(MembershipStore, (store) =>
    sweepOnly(
      store,
      (sweep) => (limit, decide) =>
        sweep(limit, (candidate, now) => decide({ ...candidate, ...wrong }, now)),
    ),
  )

export const sabotages: ReadonlyArray<Sabotage> = [
  {
    name: "an extension is answered and not stored",
    invariant: "what was answered was done",
    within: 50,
    stores: breaking(MembershipStore, ({ extend }, choose) => ({
      extend: (change) =>
        choose.chance(0.2) ? Effect.succeed(completeEvent(change.event, 1)) : extend(change),
    })),
  },
  {
    name: "an end is answered and not made",
    invariant: "what was answered was done",
    within: 50,
    stores: breaking(MembershipStore, ({ end }, choose) => ({
      end: (change) =>
        choose.chance(0.5) ? Effect.succeed(completeEvent(change.event, 1)) : end(change),
    })),
  },
  {
    name: "a client is told that a member it extends is none",
    invariant: "reads see what holds",
    within: 50,
    client: sending((send, choose) => async (input, init) => {
      const isOfMember = /memberships\/\w+\/extend$/.test(String(input))
      return isOfMember && choose.chance(0.2) ? notFound() : send(input, init)
    }),
  },
  {
    name: "a member is found with an end date that was overwritten",
    invariant: "reads see what holds",
    within: 200,
    stores: breaking(MembershipStore, ({ find }, choose) => {
      const replica = new Map<string, Effect.Success<ReturnType<typeof find>>>()
      return {
        find: (projectId, userId) =>
          Effect.map(find(projectId, userId), (member) => {
            const ref = `${projectId} ${userId}`
            const found = (choose.chance(0.9) ? replica.get(ref) : undefined) ?? member
            replica.set(ref, found)
            return found
          }),
      }
    }),
  },
  {
    name: "a delivery is settled nowhere",
    invariant: "deliveries are repeated with reason only",
    within: 50,
    stores: breaking(Outbox, ({ settle }, choose) => ({
      settle: (claim, settlement) =>
        choose.chance(0.3) ? Effect.succeed("Settled") : settle(claim, settlement),
    })),
  },
  {
    name: "a delivery is taken for made before it was",
    invariant: "every event is delivered or given up",
    within: 50,
    stores: breaking(Outbox, ({ claim, settle }, choose) => ({
      claim: (options) =>
        Effect.flatMap(claim(options), (claimed) => {
          const [lost] = claimed.claims
          if (lost === undefined || !choose.chance(0.2)) return Effect.succeed(claimed)
          const attempt = {
            at: 0,
            durationMillis: 1,
            result: { _tag: "Answered", status: 204, body: "" },
          } as const
          const rest: ReadonlyArray<Claim> = claimed.claims.slice(1)
          return Effect.as(settle(lost, { _tag: "Delivered", attempt }), {
            ...claimed,
            claims: rest,
          })
        }),
    })),
  },
  {
    name: "the feed skips an event",
    invariant: "the feed has every event once",
    within: 50,
    stores: breaking(FeedStore, ({ read }, choose) => ({
      read: (projects, from, size) =>
        Effect.map(read(projects, from, size), (page) =>
          size.events < 1000 && choose.chance(0.1)
            ? { ...page, events: page.events.slice(1) }
            : page,
        ),
    })),
  },
  {
    name: "an end is announced twice",
    invariant: "ends are announced once, for dates that hold",
    within: 50,
    stores: breaking(MembershipStore, (store, choose) =>
      sweepOnly(
        store,
        (sweep) => (limit, decide) =>
          sweep(limit, (candidate, now) => {
            const decided = decide(candidate, now)
            // Looks once more in a second.
            const alarm = decided.announcement === undefined ? decided.alarm : now + 1000
            return choose.chance(0.5)
              ? { ...decide({ ...candidate, announced: undefined }, now), alarm }
              : { ...decided, alarm }
          }),
      ),
    ),
  },
  {
    name: "a reminder comes whose time had come when the date was set",
    invariant: "ends are announced once, for dates that hold",
    within: 50,
    stores: decidingBy({ dateSetAt: -Infinity }),
  },
  {
    name: "what a bulk extension sets off comes at once",
    invariant: "ends are announced once, for dates that hold",
    within: 50,
    stores: decidingBy({ isSetWithOthers: false }),
  },
  {
    name: "a membership expires before the grace is over",
    invariant: "ends are announced once, for dates that hold",
    within: 50,
    stores: decidingBy({ grace: Millis(0) }),
  },
  {
    name: "an end is not told to be overdue",
    invariant: "ends are announced once, for dates that hold",
    within: 100,
    stores: breaking(MembershipStore, (store) =>
      sweepOnly(
        store,
        (sweep) => (limit, decide) =>
          sweep(limit, (candidate, now) => {
            const decided = decide(candidate, now)
            return decided.announcement?.action === "overdue"
              ? { ...decided, announcement: undefined }
              : decided
          }),
      ),
    ),
  },
  {
    name: "an end is announced that does not hold any more",
    invariant: "ends are announced once, for dates that hold",
    within: 50,
    stores: breaking(MembershipStore, (store) => {
      const seen = new Map<
        string,
        Parameters<Parameters<NonNullable<typeof store.expiry>["sweep"]>[1]>[0]
      >()
      return sweepOnly(
        store,
        (sweep) => (limit, decide) =>
          sweep(limit, (candidate, now) => {
            const member = `${candidate.projectId} ${candidate.userId}`
            const earlier = seen.get(member) ?? candidate
            seen.set(member, candidate)
            return decide({ ...candidate, endDate: earlier.endDate }, now)
          }),
      )
    }),
  },
  {
    name: "a pause that is resumed adds no time",
    invariant: "dates follow from the events",
    within: 100,
    stores: breaking(MembershipStore, ({ resume }) => ({
      resume: ({ expected, ...change }) =>
        resume({ ...change, at: expected.pause.since, endDate: expected.endDate, expected }),
    })),
  },
  {
    name: "ends are announced in a pause",
    invariant: "pauses let time stand, and their ends are told once",
    within: 100,
    stores: decidingBy({ pause: undefined }),
  },
  {
    name: "that a pause has ended is told twice",
    invariant: "pauses let time stand, and their ends are told once",
    within: 50,
    stores: breaking(MembershipStore, (store) =>
      sweepOnly(store, (sweep) => {
        const ended = new Map<string, Pause>()
        return (limit, decide) =>
          sweep(limit, (candidate, now) => {
            const member = `${candidate.projectId} ${candidate.userId}`
            const pause = candidate.pause ?? ended.get(member)
            const decided = decide({ ...candidate, pause }, now)
            ended.delete(member)
            if (decided.announcement?.action !== "resumed" || candidate.pause === undefined) {
              return decided
            }
            ended.set(member, candidate.pause)
            return { ...decided, alarm: now + 1000 }
          })
      }),
    ),
  },
  {
    name: "a limit lets pass what it refuses",
    invariant: "limits hold",
    within: 50,
    stores: breaking(RateLimitStore, ({ take }, choose) => ({
      take: (client, policies) =>
        Effect.map(take(client, policies), (taken) =>
          choose.chance(0.3) ? { ...taken, admitted: true } : taken,
        ),
    })),
  },
  {
    name: "an idempotency key is forgotten",
    invariant: "an idempotency key takes effect once",
    within: 50,
    stores: breaking(MembershipStore, ({ extend, grant }) => ({
      grant: ({ idempotency: _, ...change }) => grant(change),
      extend: ({ idempotency: _, ...change }) => extend(change),
    })),
  },
  {
    name: "a deleted webhook stays",
    invariant: "a deleted webhook gets nothing",
    within: 50,
    stores: breaking(WebhookStore, () => ({ remove: () => Effect.void })),
  },
  {
    name: "an undo misses a member",
    invariant: "dates follow from the events",
    within: 50,
    stores: breaking(MembershipStore, (store) => {
      // What an undo has missed: the date that a member should have, and the one that it keeps.
      const missed = new Map<string, { readonly right: EndDate; readonly kept: EndDate }>()
      const first = (projectId: ProjectId) =>
        Effect.orDie(store.list(projectId, { after: undefined, limit: 1 }))
      return {
        undoBulkExtension: (undo) =>
          Effect.gen(function* () {
            const [before] = yield* first(undo.projectId)
            const undone = yield* store.undoBulkExtension(undo)
            const [after] = yield* first(undo.projectId)
            if (before !== undefined && after !== undefined) {
              missed.set(undo.projectId, { right: after.endDate, kept: before.endDate })
            }
            return undone
          }),
        list: (projectId, page) =>
          Effect.map(store.list(projectId, page), (members) =>
            members.map((member) => {
              const { kept, right } = missed.get(projectId) ?? {}
              return kept !== undefined && member.endDate === right
                ? { ...member, endDate: kept }
                : member
            }),
          ),
      }
    }),
  },
  {
    name: "a client repeats a request with another idempotency key",
    invariant: "an idempotency key takes effect once",
    within: 50,
    client: sending((send) => {
      const used = new Map<string, number>()
      return (input, init) => {
        const headers = new Headers(init?.headers)
        const key = headers.get(keyName)
        if (key === null) return send(input, init)
        const uses = used.get(key) ?? 0
        used.set(key, uses + 1)
        if (uses > 0) headers.set(keyName, `${key}-${uses}`)
        return send(input, { ...init, headers })
      }
    }),
  },
  {
    name: "a client takes a broken connection for success",
    invariant: "what was answered was done",
    within: 50,
    client: sending(
      (send) => (input, init) =>
        send(input, init).catch(() => fabricate(200, { ok: true, data: {} })),
    ),
  },
  {
    name: "a client takes success for a refusal",
    invariant: "what was refused was not done",
    within: 50,
    client: sending((send, choose) => async (input, init) => {
      const response = await send(input, init)
      const { method = "GET" } = init ?? {}
      if (method === "GET" || response.status !== 200 || !choose.chance(0.2)) return response
      return notFound()
    }),
  },
  {
    name: "a client does not wait for as long as the server asks",
    invariant: "clients wait as they are asked to",
    within: 50,
    client: (options) => ({
      ...options,
      sleep: (millis) => new Promise((resolve) => setTimeout(resolve, millis / 2)),
    }),
  },
  {
    name: "a subscription forgets its cursor",
    invariant: "the feed has every event once",
    within: 50,
    client: sending((send) => {
      let isAgain = false
      return (input, init) => {
        const isStream = new Headers(init?.headers).get("accept") === "text/event-stream"
        const url = isStream && isAgain ? String(input).replace(/after=[^&]*/, "") : input
        isAgain ||= isStream
        return send(url, init)
      }
    }),
  },
  {
    name: "a notification says something else",
    invariant: "receivers trust what happened",
    within: 50,
    stores: breaking(Outbox, ({ claim }, choose) => ({
      claim: (options) =>
        Effect.map(claim(options), (claimed) => ({
          ...claimed,
          claims: claimed.claims.map(({ event, ...rest }) => ({
            ...rest,
            event: choose.chance(0.1)
              ? { ...event, body: event.body.replace(/"data":.*$/, '"data":{}}') }
              : event,
          })),
        })),
    })),
  },
]
