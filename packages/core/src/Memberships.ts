/** Memberships: what a host does with them in process, and what the API does. */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EndDate from "./EndDate.ts"
import * as Event from "./Event.ts"
import { Hooks } from "./Hooks.ts"
import * as Input from "./internal/input.ts"
import * as Uuid from "./internal/uuid.ts"
import type { InvalidInput } from "./InvalidInput.ts"
import type { AuditRow, Membership, MembershipNotFound } from "./Membership.ts"
import { MembershipStore } from "./MembershipStore.ts"
import * as Origin from "./Origin.ts"
import type { ProjectId, ProjectNotFound } from "./Project.ts"
import * as Setting from "./Setting.ts"
import type { StoreUnavailable } from "./StoreUnavailable.ts"

/** A user of a project. */
export interface Member {
  readonly projectId: string
  readonly userId: string
}

/** An end date in either spelling of `EndDate.parse`. */
export type EndDateInput = string | number

/** Options of the service. */
export interface Options {
  /**
   * Whether a bulk extension also sets memberships that end later than the new date (`"set"`, the
   * default), or leaves those as they are (`"neverShorten"`).
   */
  readonly bulk?: "set" | "neverShorten" | undefined
}

/** What a bulk extension did. */
export interface BulkExtended {
  readonly endDate: EndDate.EndDate
  /** The number of memberships that were set. */
  readonly total: number
}

type Failure = InvalidInput | StoreUnavailable

/** Grants, reads, extends and ends memberships. */
export class Memberships extends Context.Service<
  Memberships,
  {
    /** Creates a project. Does nothing if it exists. */
    readonly createProject: (projectId: string) => Effect.Effect<void, Failure>

    /** Creates a membership, or sets its end date, which may lie in the past. */
    readonly grant: (
      grant: Member & { readonly endDate: EndDateInput },
    ) => Effect.Effect<Membership, Failure | EndDate.InvalidEndDate | ProjectNotFound>

    /** Sets a future end date, whether the membership has expired or not. */
    readonly extend: (
      extension: Member & { readonly endDate: EndDateInput },
      origin?: Origin.Origin,
    ) => Effect.Effect<
      Membership,
      Failure | EndDate.InvalidEndDate | EndDate.EndDateNotInFuture | MembershipNotFound
    >

    /** Sets a future end date for all memberships of a project. */
    readonly extendAll: (
      extension: { readonly projectId: string; readonly endDate: EndDateInput },
      origin?: Origin.Origin,
    ) => Effect.Effect<
      BulkExtended,
      Failure | EndDate.InvalidEndDate | EndDate.EndDateNotInFuture | ProjectNotFound
    >

    /** Removes a membership. */
    readonly end: (member: Member) => Effect.Effect<void, Failure | MembershipNotFound>

    /** Reads a membership. */
    readonly find: (member: Member) => Effect.Effect<Membership, Failure | MembershipNotFound>

    /** Reads up to `limit` memberships (100 by default, 10,000 at most), by user id, those after `after`. */
    readonly list: (page: {
      readonly projectId: string
      readonly after?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<Membership>, Failure | ProjectNotFound>

    /**
     * Reads the newest `limit` rows (100 by default, 10,000 at most) of the audit trail, newest first: of a
     * project, or of one user's membership in it.
     */
    readonly history: (page: {
      readonly projectId: string
      readonly userId?: string | undefined
      readonly limit?: number | undefined
    }) => Effect.Effect<ReadonlyArray<AuditRow>, Failure | ProjectNotFound>
  }
>()("@tenure/core/Memberships") {
  static readonly layer = (
    options: Options = {},
  ): Layer.Layer<Memberships, InvalidInput, MembershipStore> =>
    Layer.effect(Memberships, make(options))
}

const make = Effect.fnUntraced(function* (options: Options) {
  const mode = yield* Setting.oneOf("bulk", options.bulk ?? "set", ["set", "neverShorten"])
  const hooks = yield* Hooks
  const store = yield* MembershipStore
  const crypto = yield* WebCrypto

  /** What every change carries: its audit fields, and its event with the request's id in the data. */
  const change = (
    projectId: ProjectId,
    origin: Origin.Origin,
    at: number,
    type: Event.EventType,
    data: object,
  ) => ({
    projectId,
    origin,
    at,
    event: Event.make({
      id: Event.EventId(Uuid.v7(crypto, at)),
      projectId,
      type,
      at,
      data: { project_id: projectId, ...data, request_id: origin.requestId ?? null },
    }),
  })

  return Memberships.of({
    createProject: (projectId) => Effect.flatMap(Input.projectId(projectId), store.createProject),

    grant: Effect.fnUntraced(function* (grant) {
      const projectId = yield* Input.projectId(grant.projectId)
      const userId = yield* Input.userId(grant.userId)
      const at = yield* Clock.currentTimeMillis
      const endDate = yield* Effect.fromResult(EndDate.decode(grant.endDate))
      const data = { user_id: userId, new_end_date: EndDate.format(endDate) }
      const changed = change(projectId, Origin.host, at, Event.types.granted, data)
      yield* store.grant({ ...changed, userId, endDate })
      yield* hooks.event(changed.event)
      return { projectId, userId, endDate }
    }),

    extend: Effect.fnUntraced(function* (extension, origin = Origin.host) {
      const at = yield* Clock.currentTimeMillis
      const endDate = yield* Effect.fromResult(EndDate.decodeFuture(extension.endDate, at))
      const projectId = yield* Input.projectId(extension.projectId)
      const userId = yield* Input.userId(extension.userId)
      const data = { user_id: userId, new_end_date: EndDate.format(endDate) }
      const changed = change(projectId, origin, at, Event.types.extended, data)
      yield* store.extend({ ...changed, userId, endDate })
      yield* hooks.event(changed.event)
      return { projectId, userId, endDate }
    }),

    extendAll: Effect.fnUntraced(function* (extension, origin = Origin.host) {
      const projectId = yield* Input.projectId(extension.projectId)
      const at = yield* Clock.currentTimeMillis
      const endDate = yield* Effect.fromResult(EndDate.decodeFuture(extension.endDate, at))
      const data = { new_end_date: EndDate.format(endDate) }
      const changed = change(projectId, origin, at, Event.types.bulkExtended, data)
      const total = yield* store.extendAll({ ...changed, endDate, mode })
      yield* hooks.event(changed.event)
      return { endDate, total }
    }),

    end: Effect.fnUntraced(function* (ids) {
      const projectId = yield* Input.projectId(ids.projectId)
      const userId = yield* Input.userId(ids.userId)
      const at = yield* Clock.currentTimeMillis
      const data = { user_id: userId }
      const changed = change(projectId, Origin.host, at, Event.types.ended, data)
      yield* store.end({ ...changed, userId })
      yield* hooks.event(changed.event)
    }),

    find: Effect.fnUntraced(function* (ids) {
      const projectId = yield* Input.projectId(ids.projectId)
      const userId = yield* Input.userId(ids.userId)
      return yield* store.find(projectId, userId)
    }),

    list: Effect.fnUntraced(function* ({ after, limit = 100, projectId }) {
      return yield* store.list(yield* Input.projectId(projectId), {
        after: after === undefined ? undefined : yield* Input.userId(after),
        limit: yield* Input.limit(limit),
      })
    }),

    history: Effect.fnUntraced(function* ({ limit = 100, projectId, userId }) {
      return yield* store.history(yield* Input.projectId(projectId), {
        userId: userId === undefined ? undefined : yield* Input.userId(userId),
        limit: yield* Input.limit(limit),
      })
    }),
  })
})
