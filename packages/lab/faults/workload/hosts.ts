/** Hosts that call Tenure in their own process. */

import { randomUUID } from "node:crypto"
import { setTimeout as sleep } from "node:timers/promises"
import * as Predicate from "effect/Predicate"
import pg from "pg"
import { now } from "../clock.ts"
import type { Manner, Operation } from "../history.ts"
import {
  type World,
  endingProject,
  host,
  personIds,
  places,
  rushProjects,
  userIds,
} from "../world/world.ts"
import {
  type Actor,
  type Answered,
  type Asked,
  type Recorder,
  type Scene,
  actor,
  anyDate,
  repeat,
} from "./recorder.ts"

type Host = Pick<Actor, "recorder" | "world">

const statuses: Readonly<Record<string, number>> = {
  StoreUnavailable: 503,
  InvalidInput: 422,
  EndDateNotInFuture: 422,
  MembershipNotFound: 404,
  ProjectNotFound: 404,
  WebhookNotFound: 404,
  BulkExtensionUndone: 409,
  BulkExtensionSettled: 409,
}

/** The API's answer instead of a failed call. */
export const refused = (fault: unknown): Answered => {
  const tag = Predicate.hasProperty(fault, "_tag") ? String(fault._tag) : ""
  const status = statuses[tag] ?? 500
  return { status, problem: status === 500 ? String(fault) : undefined }
}

type Call = Omit<Asked, "expected" | "process"> & Partial<Pick<Asked, "expected">>

/** Calls Tenure, and records what the API would have answered. */
const call = <A>(
  { recorder }: Pick<Host, "recorder">,
  asked: Call,
  perform: () => Promise<A>,
  learn: (found: A) => Partial<Operation> = () => ({}),
): Promise<Operation> =>
  recorder.record({ expected: [200], ...asked, process: host }, () =>
    perform().then((found) => ({ status: 200, ...learn(found) }), refused),
  )

/** Makes a change, with a request id. */
const change = (
  on: Host,
  { requestId = randomUUID(), ...asked }: Call,
  perform: (origin: { readonly requestId: string }) => Promise<unknown>,
): Promise<Operation> => call(on, { ...asked, requestId }, () => perform({ requestId }))

const grant = (on: Host, projectId: string, userId: string, endDate: number) =>
  change(on, { action: "grant", projectId, userId, endDate }, (origin) =>
    on.world.tenure.memberships.grant({ projectId, userId, endDate: new Date(endDate) }, origin),
  )

// The date may have come before it is set.
const expected = [200, 422]

const extend = (on: Host, projectId: string, userId: string, endDate: number) =>
  change(on, { action: "extend", projectId, userId, endDate, expected }, (origin) =>
    on.world.tenure.memberships.extend({ projectId, userId, endDate }, origin),
  )

const extendAll = (on: Host, asked: Omit<Call, "action"> & { readonly endDate: number }) =>
  change(on, { ...asked, action: "extendAll" }, (origin) => {
    const { endDate, isNeverShortening = false, projectId } = asked
    const mode = isNeverShortening ? "neverShorten" : "set"
    return on.world.tenure.memberships.extendAll({ projectId, endDate, mode }, origin)
  })

// Few, because each has a history, and a bulk extension announces all ends.
const maxUsers = 40

/** Grants a membership that nobody else changes, and ends it. */
const comeAndGo = async (on: Actor, projectId: string): Promise<void> => {
  const userId = String(2_000_000 + on.choose.below(maxUsers))
  const granted = await grant(on, projectId, userId, anyDate(on).endDate)
  if (granted.status !== 200) return
  await change(on, { action: "end", projectId, userId }, (origin) =>
    on.world.tenure.memberships.end({ projectId, userId }, origin),
  )
}

const find = (on: Host, projectId: string, userId: string) =>
  call(
    on,
    { action: "find", projectId, userId, expected: [200, 404] },
    () => on.world.tenure.memberships.find({ projectId, userId }),
    ({ endDate }) => ({ endDate }),
  )

const publish = (on: Host, projectId: string) => {
  const payment = String(on.recorder.nextNumber())
  const event = { projectId, type: "payment.completed", data: { payment, amount: 5 } }
  return call(on, { action: "publish", projectId, subject: payment }, () =>
    on.world.tenure.events.publish(event),
  )
}

const importPersons = (on: Host, projectId: string) => {
  const members = personIds.map((userId) => ({ userId, endDate: on.recorder.nextDate() }))
  return change(on, { action: "import", projectId, members }, (origin) =>
    on.world.tenure.memberships.import({ projectId, memberships: members }, origin),
  )
}

const erase = (on: Host, projectId: string, userId: string) =>
  change(on, { action: "erase", projectId, userId }, (origin) =>
    on.world.tenure.memberships.erase({ projectId, userId }, origin),
  )

/** Makes one call after the other. */
export const runHost = (scene: Scene): Promise<void> => {
  const on = actor(scene, host)
  return repeat(on, () => {
    const projectId = on.choose.pick(places.projects)
    const userId = on.choose.pick(userIds)
    const personId = on.choose.pick(personIds)
    const dice = on.choose.next()
    if (dice < 0.25) return find(on, projectId, userId)
    if (dice < 0.32) return find(on, projectId, personId)
    if (dice < 0.55) return publish(on, projectId)
    if (dice < 0.7) return grant(on, projectId, userId, anyDate(on).endDate)
    if (dice < 0.75) return grant(on, projectId, personId, anyDate(on).endDate)
    if (dice < 0.82) return importPersons(on, projectId)
    return dice < 0.9 ? erase(on, projectId, personId) : comeAndGo(on, projectId)
  })
}

const list = (on: Host, projectId: string) => {
  const all = [...userIds, ...personIds]
  return call(
    on,
    { action: "list", projectId },
    () => on.world.tenure.memberships.list({ projectId, userIds: all }),
    (rows) => {
      const found = new Map<string, number>(rows.map(({ endDate, userId }) => [userId, endDate]))
      return { members: all.map((userId) => ({ userId, endDate: found.get(userId) })) }
    },
  )
}

const dayMillis = 86_400_000

const addDays = (on: Actor, projectId: string, requestId: string) => {
  const days = 1 + on.choose.below(30)
  const idempotencyKey = randomUUID()
  const extendBy = days * dayMillis
  const asked = { action: "extendAll", projectId, extendBy, requestId, idempotencyKey } as const
  return change(on, asked, (origin) =>
    on.world.tenure.memberships.extendAll({ projectId, by: `P${days}D`, idempotencyKey }, origin),
  )
}

const lengthenAll = (on: Host, projectId: string, requestId: string) =>
  extendAll(on, {
    projectId,
    endDate: on.recorder.nextDate(),
    isNeverShortening: true,
    requestId,
  })

/** Undoes a request's bulk extension, if its id can be found out. Returns whether it was tried. */
const undo = async (on: Host, projectId: string, subject: string): Promise<boolean> => {
  const { memberships } = on.world.tenure
  const made = await memberships.bulkExtensions({ projectId, limit: 10 }).catch(() => [])
  const id = made.find(({ origin }) => origin.requestId === subject)?.id
  if (id === undefined) return false
  await change(on, { action: "undo", projectId, subject, expected: [200, 409] }, (origin) =>
    memberships.undoBulkExtension({ projectId, id }, origin),
  )
  return true
}

// How often the end dates are read after each bulk extension, and after it was undone.
const readings = 4

/**
 * Extends all members in a project, without shortening any, undoes that now and then, and reads their end dates: also
 * while changes for single members wait for a lock.
 */
export const runBulkHost = async (scene: Scene): Promise<void> => {
  const on = actor(scene, "bulk")
  const { choose, isOver } = on
  while (!isOver()) {
    const projectId = choose.pick(places.projects)
    const readSome = async () => {
      let reading = 0
      const isRead = () => isOver() || reading++ === readings
      await repeat({ ...on, isOver: isRead }, () => list(on, projectId))
    }
    const requestId = randomUUID()
    await (choose.chance(0.5) ? addDays : lengthenAll)(on, projectId, requestId)
    await readSome()
    if (choose.chance(0.4) && (await undo(on, projectId, requestId))) await readSome()
  }
}

// With that, all reminders have their time.
const longestAheadMillis = 6000

/** Grants memberships and sets end dates, mostly so near that they come before the next change. */
export const runEnding = (scene: Scene): Promise<void> => {
  const on = actor(scene, "ending")
  const { choose, recorder } = on
  const nearDate = () => recorder.dateAhead(choose.between(0, longestAheadMillis))
  const anyUserId = () => String(3_000_000 + choose.below(maxUsers))
  const projectId = endingProject
  const step = () => {
    const dice = choose.next()
    if (dice < 0.5) return grant(on, projectId, anyUserId(), nearDate())
    if (dice < 0.8) return extend(on, projectId, choose.pick(userIds), nearDate())
    if (dice < 0.93) return extend(on, projectId, choose.pick(userIds), recorder.nextDate())
    const isNeverShortening = choose.chance(0.5)
    return extendAll(on, { projectId, endDate: nearDate(), isNeverShortening, expected })
  }
  return repeat(on, step, 50, 400)
}

// Less than the shortest reminder, so that only each member's end is announced.
const rushAheadMillis = 700

// Longer than the processes take until each has looked for ends.
const rushMillis = 700

/**
 * Has members in many projects end at the same moment, and extends them all while that is announced,
 * without shortening any.
 */
export const runRush = (scene: Scene): Promise<void> => {
  const on = actor(scene, "rush")
  const { choose, recorder } = on
  const [userId] = userIds
  const step = async () => {
    const end = now() + rushAheadMillis
    await Promise.all(
      rushProjects.map((id) => extend(on, id, userId, recorder.dateAhead(rushAheadMillis))),
    )
    await Promise.all(
      rushProjects.map(async (projectId) => {
        await sleep(Math.max(0, end - now()) + choose.between(0, rushMillis))
        const endDate = recorder.nextDate()
        await extendAll(on, { projectId, endDate, isNeverShortening: true, expected })
      }),
    )
  }
  return repeat(on, step, 200, 1000)
}

// Longer than others take to commit, and less than what counts as slow.
const longestHeldMillis = 1200

// An answer that the link has swallowed does not come any more.
const patience = { connectionTimeoutMillis: 10_000, query_timeout: 10_000 }

/** Publishes in a transaction, and commits it after a while. Without an answer, it may have committed. */
const publishHeld = async (
  { database, links, tenure }: World,
  projectId: string,
  payment: string,
  heldMillis: number,
): Promise<Answered> => {
  const connectionString = database.urlThrough(links.get(host)?.port ?? 0)
  const client = new pg.Client({ connectionString, ...patience })
  client.on("error", () => {})
  try {
    await client.connect()
    await client.query("BEGIN")
    const data = { payment, amount: 5 }
    await tenure.within(client).events.publish({ projectId, type: "payment.completed", data })
    await sleep(heldMillis)
    await client.query("COMMIT")
    return { status: 200 }
  } catch {
    return { status: 503 }
  } finally {
    // It may have to wait for a link that is silent.
    void client.end().catch(() => {})
  }
}

/** Publishes events in transactions, which stay open while others commit. */
export const runLateHost = (scene: Scene, name: string): Promise<void> => {
  const on = actor(scene, name)
  const { choose, recorder, world } = on
  return repeat(on, () => {
    const projectId = choose.pick(places.projects)
    const subject = String(recorder.nextNumber())
    const asked = { action: "publish", process: host, projectId, subject, expected: [200] } as const
    return recorder.record(asked, () =>
      publishHeld(world, projectId, subject, choose.between(0, longestHeldMillis)),
    )
  })
}

/** Creates a webhook in process, and records it. */
export const createWebhook = (
  { receivers, tenure }: World,
  recorder: Recorder,
  projectId: string,
  manner: Manner,
): Promise<Operation> => {
  const url = receivers.url(manner)
  return call(
    { recorder },
    { action: "createWebhook", projectId },
    () => tenure.webhooks.create({ projectId, url }),
    ({ id, secret }) => ({ webhook: { id, url, secret } }),
  )
}
