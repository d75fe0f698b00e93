/** What the methods that change memberships share. */

import * as Effect from "effect/Effect"
import {
  type IdempotencyKey,
  type IdempotencyKeyInput,
  type ReplayedResponse,
  isReplayedResponse,
  notifyReplay,
  readIdempotencyKey,
} from "../base/change-context.ts"
import type { InvalidInput } from "../base/errors.ts"
import { readArgument, readBranded } from "../base/input.ts"
import * as Setting from "../base/setting.ts"
import {
  type Event,
  type EventDraft,
  type EventDraftData,
  type EventType,
  type Hooks,
  draftEvent,
  newEventId,
} from "../events/event.ts"
import { Reason } from "./membership.ts"
import type { Change, MembershipStore } from "./store.ts"

/** What every change of memberships takes. */
export interface Changing {
  /** Why: 1 to 500 characters, which the audit trail and the event of the change keep. */
  readonly reason?: string | undefined
  /**
   * Makes the change once, however often the call is repeated within 24 hours: 1 to 255 visible
   * characters of ASCII. Each `keyId` of an origin has idempotency keys of its own.
   */
  readonly idempotencyKey?: IdempotencyKeyInput | undefined
}

/** What a change takes that can be tried. */
export interface Trying extends Changing {
  /**
   * If true, nothing is changed, recorded or published. The result, or the failure, is that of the same
   * call without it.
   */
  readonly dryRun?: boolean | undefined
}

const absent = Effect.succeed(undefined)

/** Reads the reason of a change. */
export const readReason = ({ reason }: Changing): Effect.Effect<Reason | undefined, InvalidInput> =>
  reason === undefined ? absent : readBranded("reason", Reason, reason)

const notDry = Effect.succeed(false)

/** Reads whether a change is only tried. */
export const readDryRun = ({ dryRun }: Trying): Effect.Effect<boolean, InvalidInput> =>
  dryRun === undefined ? notDry : readArgument("dryRun", Setting.boolean, dryRun)

/** A change before its event is made. */
export type AskedChange = Omit<Change, "event" | "once">

/** Reads the idempotency key of a call, whose arguments the other parameters have. */
export const readOnce = (
  { idempotencyKey }: Changing,
  { origin, projectId, reason }: AskedChange,
  type: EventType,
  data: unknown,
  ...conditions: ReadonlyArray<unknown>
): Effect.Effect<IdempotencyKey | undefined, InvalidInput> =>
  idempotencyKey === undefined
    ? absent
    : readIdempotencyKey(idempotencyKey, origin.keyId, type, projectId, data, reason, ...conditions)

/** What changes need. */
export interface ChangeServices {
  readonly store: MembershipStore["Service"]
  readonly hooks: Hooks
  readonly crypto: { readonly randomUUID: () => string }
}

/** Makes the event of a change, with fields of the client in the data. */
export const changeEvent = (
  { crypto }: Pick<ChangeServices, "crypto">,
  { at, origin, projectId, reason }: AskedChange,
  type: EventType,
  data: EventDraftData,
): EventDraft =>
  draftEvent({
    id: newEventId(crypto, at),
    projectId,
    type,
    at,
    traceparent: origin.traceparent,
    // JSON has no reason where it is undefined.
    data: { ...data, request_id: origin.requestId ?? null, reason },
  })

/** Tells the host of a change, or the caller that it was made before. */
export const reportChange = (
  { hooks }: Pick<ChangeServices, "hooks">,
  changed: Pick<Change, "once">,
  result: Event | ReplayedResponse,
): Effect.Effect<void> =>
  isReplayedResponse(result) ? notifyReplay(changed, result) : hooks.event(result)
