/** API keys and tickets in memory. */

import { currentMoment, withMoment } from "@tenure/core/internal"
import {
  type ApiKey,
  ApiKeyConflict,
  type ApiKeyId,
  ApiKeyNotFound,
  ApiKeyRevoked,
  type ApiKeyStore,
  type ChangeContext,
  type KeyScope,
  type Ticket,
  TicketLimitReached,
  type TicketStore,
  type TokenDigest,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { type State, addAuditRow, projectOf } from "./state.ts"

const isWithin = ({ projects }: ApiKey, within: KeyScope): boolean =>
  within === "all" ||
  (projects !== "all" && projects.size > 0 && [...projects].every((id) => within.has(id)))

/** Returns the union of two keys' projects. */
const union = (one: ApiKey["projects"], other: ApiKey["projects"]): ApiKey["projects"] =>
  one === "all" || other === "all" ? "all" : new Set([...one, ...other])

const sizeOf = (projects: ApiKey["projects"]): number =>
  projects === "all" ? Infinity : projects.size

/** Makes the store. */
export const makeMemoryApiKeyStore = (state: State): ApiKeyStore["Service"] => {
  const { keys } = state
  const ids = new Map<TokenDigest, ApiKeyId>()

  const put = (key: ApiKey): ApiKey => {
    keys.set(key.id, key)
    ids.set(key.digest, key.id)
    return key
  }

  const find = (digest: TokenDigest): ApiKey | undefined => {
    const id = ids.get(digest)
    return id && keys.get(id)
  }

  const add = Effect.fnUntraced(function* (key: ApiKey, context: ChangeContext) {
    const projects = key.projects === "all" ? [] : key.projects
    for (const id of projects) yield* projectOf(state, id)
    const known = find(key.digest)
    if (known === undefined) {
      addAuditRow(state, undefined, "key_issued", key.id, context)
      return put(key)
    }
    const { id, revokedAt, role } = known
    if (revokedAt !== undefined) return yield* new ApiKeyRevoked({ keyId: id })
    if (role !== key.role) return yield* new ApiKeyConflict({ keyId: id, role })
    const opened = union(known.projects, key.projects)
    if (sizeOf(opened) > sizeOf(known.projects)) {
      addAuditRow(state, undefined, "key_opened", id, context)
    }
    return put({ ...known, projects: opened })
  })

  return {
    ping: Effect.void,

    add: (key, context) =>
      state.answers.change(
        context.idempotency,
        undefined,
        add(key, context),
        ({ id }, given = id) => given,
      ),

    find: (digest) => Effect.sync(() => find(digest)),

    revoke: ({ keyId, within, ...context }) =>
      state.answers.change(
        context.idempotency,
        undefined,
        Effect.suspend(() => {
          const key = keys.get(keyId)
          if (key === undefined || !isWithin(key, within)) {
            return Effect.fail(new ApiKeyNotFound({ keyId }))
          }
          if (key.revokedAt !== undefined) return Effect.void
          put({ ...key, revokedAt: context.at })
          addAuditRow(state, undefined, "key_revoked", keyId, context)
          return Effect.void
        }),
      ),

    touch: (uses) =>
      Effect.sync(() => {
        for (const [id, at] of uses) {
          const key = keys.get(id)
          if (key !== undefined) put({ ...key, lastUsedAt: Math.max(key.lastUsedAt ?? at, at) })
        }
      }),

    names: (keyIds) =>
      Effect.sync(() => {
        const names = new Map<ApiKeyId, string>()
        for (const id of keyIds) {
          const name = keys.get(id)?.name
          if (name !== undefined) names.set(id, name)
        }
        return names
      }),

    list: ({ after, limit, within }) =>
      Effect.suspend(() => {
        const visible = [...keys.values()].filter((key) => isWithin(key, within))
        if (after === undefined) return Effect.succeed(visible.slice(0, limit))
        const index = visible.findIndex(({ id }) => id === after)
        return index === -1
          ? Effect.fail(new ApiKeyNotFound({ keyId: after }))
          : Effect.succeed(visible.slice(index + 1, index + 1 + limit))
      }),
  }
}

interface Entry {
  readonly ticket: Ticket
  /** The ticket lives before this tick. */
  readonly until: number
}

/** Makes an empty store. */
export const makeMemoryTicketStore = (): TicketStore["Service"] => {
  const entries = new Map<TokenDigest, Entry>()

  /** Drops expired tickets, and counts a key's remaining ones. */
  const countOf = (keyId: string, now: number): number => {
    let count = 0
    for (const [digest, { ticket, until }] of entries) {
      if (until <= now) entries.delete(digest)
      else if (ticket.keyId === keyId) count++
    }
    return count
  }

  return {
    add: (ticket, { lifeMillis, most }) =>
      withMoment(({ tick }) => {
        const { digest, keyId } = ticket
        if (countOf(keyId, tick) >= most) return Effect.fail(new TicketLimitReached({ keyId }))
        entries.set(digest, { ticket, until: tick + lifeMillis })
        return Effect.void
      }),

    take: (digest) =>
      Effect.map(currentMoment, ({ tick }) => {
        const entry = entries.get(digest)
        entries.delete(digest)
        return entry !== undefined && tick < entry.until ? entry.ticket : undefined
      }),
  }
}
