/** Operations that extend memberships, undo extensions, and count end dates. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ApiErrorOf } from "../api/errors.ts"
import type { EventsPreview as EventsData } from "../api/membership-replies.ts"
import { membershipOperations } from "../api/memberships.ts"
import type { ChangeContext } from "../base/change-context.ts"
import { InvalidInput } from "../base/errors.ts"
import type { Decoded } from "../base/operation-input.ts"
import { roleCovers } from "../keys/api-key.ts"
import type {
  AnnouncementCounts,
  BulkExample,
  BulkExtensionRecord,
  BulkPreview,
} from "../memberships/bulk-extension.ts"
import type { EventsPreview } from "../memberships/dry-run.ts"
import { formatDuration } from "../memberships/duration.ts"
import {
  bulkChangeNames,
  formatEndDate,
  formatEndDateOrNull,
  lastEndDate,
} from "../memberships/end-date.ts"
import type { EndCounts } from "../memberships/ends.ts"
import type { BulkGoal } from "../memberships/extension-inputs.ts"
import type { ExtensionResult } from "../memberships/extensions.ts"
import { MembershipActs } from "../memberships/membership-acts.ts"
import { type Call, isoOrNull, perform } from "./operation.ts"
import { pageReply } from "./response.ts"

const { bulkExtensions, ends, extend, extendAll, extendSome, grant, undoBulkExtension } =
  membershipOperations

const alone = (field: string, problem: string) =>
  Result.fail(new InvalidInput({ field, problem: `must be left out ${problem}` }))

/** Returns the extension a count assumes. */
const goalOf = ({
  extend: endDate,
  extendBy: by,
  mode,
  through,
}: Decoded<typeof ends.input>): Result.Result<BulkGoal | undefined, InvalidInput> => {
  const timeZone = undefined
  if (by !== undefined) {
    if (endDate !== undefined) return alone("extend", "beside extend_by")
    if (through !== undefined) return alone("through", "beside extend_by")
    if (mode !== undefined) return alone("mode", "beside extend_by")
    return Result.succeed({ by, endDate, mode, through, timeZone })
  }
  if (through !== undefined) {
    if (endDate !== undefined) return alone("extend", "beside through")
    return Result.succeed({ by, endDate, mode, through, timeZone })
  }
  if (endDate !== undefined) return Result.succeed({ by, endDate, mode, through, timeZone })
  return mode === undefined ? Result.succeed(undefined) : alone("mode", "without extend")
}

const endsData = ({ at, days, endsIn7Days, endsToday, ...counts }: EndCounts) => ({
  at: isoOrNull(at),
  ...counts,
  ends_today: endsToday,
  ends_in_7_days: endsIn7Days,
  days: days.map(({ extended, ...one }) => ({ ...one, extended: extended ?? null })),
})

type Extension = Decoded<typeof extend.input>

const notExpecting = new InvalidInput({
  field: "create",
  problem: "must be left out beside expected_end_date",
})

const unrepeatable = (alternative: string) =>
  new InvalidInput({
    field: "Idempotency-Key",
    problem: `must be sent with extend_by${alternative}, because a repetition would extend twice`,
  })

/** Returns why an extension is refused before it is tried. */
const refusalOf = (
  { by, create, dryRun, expectedEndDate }: Extension,
  { idempotency }: ChangeContext,
  { principal }: Call<never>,
): ApiErrorOf<"Forbidden"> | InvalidInput | undefined => {
  if (create && !roleCovers(principal.role, "operator")) return { _tag: "Forbidden" }
  if (create && expectedEndDate !== undefined) return notExpecting
  const isRepeatable = idempotency !== undefined || expectedEndDate !== undefined || dryRun
  return by === undefined || isRepeatable
    ? undefined
    : unrepeatable(" and without expected_end_date")
}

/** The message for each dry run. */
export const dryRunMessage = "This was a dry run: nothing was changed."

/** Returns the previewed webhooks, if there are any. */
export const eventsData = (
  events: EventsPreview | undefined,
): { readonly events: EventsData } | undefined =>
  events && {
    events: {
      total: events.total,
      by_type: events.byType,
      first: events.first.map(({ body, type, url, webhookId }) => ({
        webhook_id: webhookId,
        url,
        type,
        body: JSON.parse(body),
      })),
    },
  }

/** Returns the field with a dry run's announcements, if ends are announced. */
export const announcementsData = (counts: AnnouncementCounts | undefined) => {
  if (counts === undefined) return {}
  const { next24Hours, ...announcements } = counts
  return { announcements: { ...announcements, next_24_hours: next24Hours } }
}

const examplesData = (examples: ReadonlyArray<BulkExample>) =>
  examples.map(({ endDate, userId, wouldEnd }) => ({
    user_id: userId,
    end_date: formatEndDateOrNull(endDate),
    would_end: formatEndDateOrNull(wouldEnd),
  }))

/** Returns a dry run's response data. */
const previewData = ({
  announcements,
  capped,
  examples,
  lifetimesEnded,
  reactivated,
  shortened,
  total,
}: BulkPreview) => ({
  would_shorten: shortened,
  would_reactivate: reactivated,
  would_be_capped: capped,
  would_end_lifetime: lifetimesEnded,
  ...announcementsData(announcements),
  total,
  examples: examplesData(examples),
})

const recordData = ({ at, change, id, origin, reason, total, undone }: BulkExtensionRecord) => ({
  id,
  mode: bulkChangeNames[change.mode],
  end_date: change.mode === "extendBy" ? null : formatEndDate(change.endDate),
  extend_by: change.mode === "extendBy" ? formatDuration(change.by) : null,
  at: isoOrNull(at),
  reason: reason ?? null,
  key_id: origin.keyId ?? null,
  request_id: origin.requestId ?? null,
  total,
  undone_at: isoOrNull(undone?.at),
  undone_by: undone?.by.keyId ?? null,
})

const extendedMessage = (
  { by, dryRun, endDate: goal, mode, through }: Extension,
  { created = false, endDate }: ExtensionResult,
): string => {
  if (dryRun) return dryRunMessage
  if (created) return grant.reply.message
  if (by !== undefined && endDate === lastEndDate)
    return "The membership is for life: nothing was changed."
  // When the day ends is not known here, because that depends on the project's time zone.
  if (through !== undefined && mode === "neverShorten")
    return "The membership was extended, unless it ends later."
  return goal === undefined || endDate === goal
    ? extend.reply.message
    : "The membership ends later: nothing was changed."
}

const extensionReply = (extension: Extension, result: ExtensionResult) => {
  const newEndDate = formatEndDate(result.endDate)
  return {
    total: 1,
    message: extendedMessage(extension, result),
    data: {
      new_end_date: newEndDate,
      ...(extension.by !== undefined && { end_date: formatEndDateOrNull(result.endDate) }),
      ...(result.created !== undefined && { created: result.created }),
      ...announcementsData(result.announcements),
      ...eventsData(result.events),
    },
  }
}

/**
 * Makes the operations.
 *
 * @param maxBodyBytes - the longest request body, in bytes
 */
export const makeExtensionOperations = Effect.fnUntraced(function* (maxBodyBytes: number) {
  const acts = yield* MembershipActs

  return {
    // Without a generator: it is called far more often than others.
    extend: perform(extend, maxBodyBytes, (extension, context, call) => {
      const refusal = refusalOf(extension, context, call)
      return refusal === undefined
        ? Effect.map(acts.extend(extension, context), (result) => extensionReply(extension, result))
        : Effect.fail(refusal)
    }),

    extendAll: perform(extendAll, maxBodyBytes, (extension, context) =>
      Effect.gen(function* () {
        const { by, dryRun } = extension
        if (by !== undefined && context.idempotency === undefined && !dryRun)
          return yield* unrepeatable("")
        const { endDate, events, preview, total } = yield* acts.extendAll(extension, context)
        return {
          total,
          ...(preview && { message: dryRunMessage }),
          data: {
            ...(endDate !== undefined && { new_end_date: formatEndDate(endDate) }),
            ...(by && { extend_by: by.text, total }),
            ...(preview && previewData(preview)),
            ...eventsData(events),
          },
        }
      }),
    ),

    extendSome: perform(extendSome, maxBodyBytes, (extension, context) =>
      Effect.gen(function* () {
        const { by, dryRun } = extension
        if (by !== undefined && context.idempotency === undefined && !dryRun)
          return yield* unrepeatable("")
        const result = yield* acts.extendSome(extension, context)
        const { announcements, examples, next = null, total, wouldShorten } = result
        return {
          total,
          ...(dryRun && { message: dryRunMessage }),
          data: {
            total,
            next,
            ...(wouldShorten !== undefined && { would_shorten: wouldShorten }),
            ...announcementsData(announcements),
            ...(examples && { examples: examplesData(examples) }),
          },
        }
      }),
    ),

    ends: perform(ends, maxBodyBytes, (query) =>
      Effect.gen(function* () {
        const extension = yield* Effect.fromResult(goalOf(query))
        return { data: endsData(yield* acts.countEnds({ ...query, extension })) }
      }),
    ),

    bulkExtensions: perform(bulkExtensions, maxBodyBytes, ({ limit, ...page }) =>
      Effect.map(acts.bulkExtensions({ ...page, limit: limit + 1 }), (found) =>
        pageReply(found, limit, ({ id }) => id, recordData),
      ),
    ),

    undoBulkExtension: perform(undoBulkExtension, maxBodyBytes, (undoing, context) =>
      Effect.map(acts.undoBulkExtension(undoing, context), ({ events, preview, total }) => ({
        total,
        ...(preview && { message: dryRunMessage }),
        data: { total, ...(preview && previewData(preview)), ...eventsData(events) },
      })),
    ),
  }
})
