/** A host that calls Tenure in its own process. */

import { randomUUID } from "node:crypto"
import * as Predicate from "effect/Predicate"
import type { Manner } from "../history.ts"
import { type Random, random } from "../random.ts"
import { type World, host, personIds, places, userIds } from "../world/world.ts"
import { type Answered, type Recorder, anyDate } from "./recorder.ts"

/** What the host works with. */
interface Host {
  readonly world: World
  readonly recorder: Recorder
  readonly choose: Random
}

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

/** Answers a call as the API would. */
export const answered = async (
  call: () => Promise<Partial<Answered> | void>,
): Promise<Answered> => {
  try {
    return { status: 200, ...(await call()) }
  } catch (fault) {
    const tag = Predicate.hasProperty(fault, "_tag") ? String(fault._tag) : ""
    const status = statuses[tag] ?? 500
    return { status, problem: status === 500 ? String(fault) : undefined }
  }
}

const grant = async ({ choose, recorder, world }: Host, projectId: string, userId: string) => {
  const { endDate } = anyDate({ choose, recorder })
  const requestId = randomUUID()
  const asked = { action: "grant", process: host, projectId, userId, endDate, requestId } as const
  return recorder.record({ ...asked, expected: [200] }, () =>
    answered(async () => {
      const membership = { projectId, userId, endDate: new Date(endDate) }
      await world.tenure.memberships.grant(membership, { requestId })
    }),
  )
}

// Few, because each has a history.
const mostUsers = 40

/** Grants a membership that nobody else knows of, and ends it. */
const comeAndGo = async (on: Host, projectId: string): Promise<void> => {
  const { choose, recorder, world } = on
  const userId = String(2_000_000 + choose.below(mostUsers))
  const granted = await grant(on, projectId, userId)
  if (granted.status !== 200) return
  const requestId = randomUUID()
  const asked = { action: "end", process: host, projectId, userId, requestId } as const
  await recorder.record({ ...asked, expected: [200] }, () =>
    answered(() => world.tenure.memberships.end({ projectId, userId }, { requestId })),
  )
}

const find = async (
  { recorder, world }: Host,
  projectId: string,
  userId: string,
): Promise<void> => {
  const asked = { action: "find", process: host, projectId, userId } as const
  await recorder.record({ ...asked, expected: [200, 404] }, () =>
    answered(async () => {
      const { endDate } = await world.tenure.memberships.find({ projectId, userId })
      return { endDate }
    }),
  )
}

const publish = async ({ recorder, world }: Host, projectId: string): Promise<void> => {
  const subject = String(recorder.nextNumber())
  const asked = { action: "publish", process: host, projectId, subject } as const
  await recorder.record({ ...asked, expected: [200] }, () =>
    answered(async () => {
      const data = { payment: subject, amount: 5 }
      await world.tenure.events.publish({ projectId, type: "payment.completed", data })
    }),
  )
}

/** Imports persons in process. */
const importPersons = async ({ recorder, world }: Host, projectId: string): Promise<void> => {
  const requestId = randomUUID()
  const members = personIds.map((userId) => ({ userId, endDate: recorder.nextDate() }))
  const asked = { action: "import", process: host, projectId, members, requestId } as const
  await recorder.record({ ...asked, expected: [200] }, () =>
    answered(async () => {
      await world.tenure.memberships.import({ projectId, memberships: members }, { requestId })
    }),
  )
}

const erase = async ({ recorder, world }: Host, projectId: string, userId: string) => {
  const requestId = randomUUID()
  const asked = { action: "erase", process: host, projectId, userId, requestId } as const
  await recorder.record({ ...asked, expected: [200] }, () =>
    answered(() => world.tenure.memberships.erase({ projectId, userId }, { requestId })),
  )
}

const step = async (on: Host): Promise<void> => {
  const projectId = on.choose.pick(places.projects)
  const userId = on.choose.pick(userIds)
  const personId = on.choose.pick(personIds)
  const dice = on.choose.next()
  if (dice < 0.25) await find(on, projectId, userId)
  else if (dice < 0.32) await find(on, projectId, personId)
  else if (dice < 0.55) await publish(on, projectId)
  else if (dice < 0.7) await grant(on, projectId, userId)
  else if (dice < 0.75) await grant(on, projectId, personId)
  else if (dice < 0.82) await importPersons(on, projectId)
  else if (dice < 0.9) await erase(on, projectId, personId)
  else await comeAndGo(on, projectId)
}

/** Makes one call after the other, with short breaks, until it is told to stop. */
export const runHost = async (
  world: World,
  recorder: Recorder,
  seed: number,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, host)
  const on: Host = { world, recorder, choose }
  while (!isOver()) {
    await step(on)
    await world.rest(choose, 20, 150)
  }
}

const list = async ({ recorder, world }: Host, projectId: string): Promise<void> => {
  const asked = { action: "list", process: host, projectId } as const
  await recorder.record({ ...asked, expected: [200] }, () =>
    answered(async () => {
      const all = [...userIds, ...personIds]
      const rows = await world.tenure.memberships.list({ projectId, userIds: all })
      const found = new Map<string, number>(rows.map(({ endDate, userId }) => [userId, endDate]))
      return { members: all.map((userId) => ({ userId, endDate: found.get(userId) })) }
    }),
  )
}

/** Returns the id of the bulk extension that a request has made, if it can be found out. */
const findBulkExtension = async ({ world }: Host, projectId: string, requestId: string) => {
  try {
    const made = await world.tenure.memberships.bulkExtensions({ projectId, limit: 10 })
    return made.find(({ origin }) => origin.requestId === requestId)?.id
  } catch {
    return undefined
  }
}

/** Extends all members of a project, without shortening any. */
const lengthenAll = async ({ recorder, world }: Host, projectId: string, requestId: string) => {
  const endDate = recorder.nextDate()
  const asked = { action: "extendAll", process: host, projectId, endDate, requestId } as const
  await recorder.record({ ...asked, isNeverShortening: true, expected: [200] }, () =>
    answered(async () => {
      const extension = { projectId, endDate, mode: "neverShorten" } as const
      await world.tenure.memberships.extendAll(extension, { requestId })
    }),
  )
}

const dayMillis = 86_400_000

/** Extends all members of a project by some days. */
const addDays = async (
  { choose, recorder, world }: Host,
  projectId: string,
  requestId: string,
): Promise<void> => {
  const days = 1 + choose.below(30)
  const idempotencyKey = randomUUID()
  const extendBy = days * dayMillis
  const asked = { action: "extendAll", process: host, projectId, extendBy, requestId } as const
  await recorder.record({ ...asked, idempotencyKey, expected: [200] }, () =>
    answered(async () => {
      const extension = { projectId, by: `P${days}D`, idempotencyKey }
      await world.tenure.memberships.extendAll(extension, { requestId })
    }),
  )
}

/** Undoes a bulk extension. `subject` is the id of the request that has made it. */
const undo = async (
  { recorder, world }: Host,
  projectId: string,
  id: string,
  subject: string,
): Promise<void> => {
  const requestId = randomUUID()
  const asked = { action: "undo", process: host, projectId, subject, requestId } as const
  await recorder.record({ ...asked, expected: [200, 409] }, () =>
    answered(async () => {
      await world.tenure.memberships.undoBulkExtension({ projectId, id }, { requestId })
    }),
  )
}

// How often the end dates are read after each bulk extension, and after it was undone.
const readings = 4

const readSome = async (on: Host, projectId: string, isOver: () => boolean): Promise<void> => {
  for (let reading = 0; reading < readings && !isOver(); reading++) {
    await list(on, projectId)
    await on.world.rest(on.choose, 20, 150)
  }
}

/**
 * Extends all members of a project, without shortening any, undoes that now and then, and reads their end dates: also
 * while changes of single members wait for a lock. Repeats this until it is told to stop.
 */
export const runBulkHost = async (
  world: World,
  recorder: Recorder,
  seed: number,
  isOver: () => boolean,
): Promise<void> => {
  const choose = random(seed, "bulk")
  const on: Host = { world, recorder, choose }
  while (!isOver()) {
    const projectId = choose.pick(places.projects)
    const requestId = randomUUID()
    await (choose.chance(0.5) ? addDays : lengthenAll)(on, projectId, requestId)
    await readSome(on, projectId, isOver)
    const id = choose.chance(0.4) ? await findBulkExtension(on, projectId, requestId) : undefined
    if (id === undefined) continue
    await undo(on, projectId, id, requestId)
    await readSome(on, projectId, isOver)
  }
}

/** Creates a webhook in process, and records it. */
export const createWebhook = async (
  { receivers, tenure }: World,
  { record }: Recorder,
  projectId: string,
  manner: Manner,
): Promise<void> => {
  const asked = { action: "createWebhook", process: host, projectId } as const
  await record({ ...asked, expected: [200] }, () =>
    answered(async () => {
      const url = receivers.url(manner)
      const { id, secret } = await tenure.webhooks.create({ projectId, url })
      return { webhook: { id, url, secret } }
    }),
  )
}
