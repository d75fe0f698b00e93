/** `tenure trigger`: makes an event happen, for developing receivers on this machine. */

import type { IncomingMessage } from "node:http"
import type { CallOptions, Client, MembershipChange } from "@tenure/client"
import { Setting, fixedMillis } from "@tenure/core/internal"
import { DurationText } from "@tenure/core/store"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { callApi } from "../support/api.ts"
import { type Failure, operationFailed } from "../support/failure.ts"
import { projectFlag } from "../support/flags.ts"
import { parseUnrounded } from "../support/input.ts"
import { connected, printDone } from "../support/output.ts"

/**
 * Starts a server on the loopback interface until the scope closes, and returns its URL without a path.
 *
 * @param answer - returns the status for a request
 */
export const listenOnLoopback = Effect.fnUntraced(function* (
  answer: (request: IncomingMessage) => number | Promise<number>,
) {
  // Otherwise every command would load it, and `fetch`'s dependencies with it.
  const { createServer } = yield* Effect.promise(() => import("node:http"))
  const server = createServer(async (request, response) => {
    response.writeHead(await answer(request)).end()
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      server.listen(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  if (address === null || typeof address === "string")
    return yield* operationFailed("The receiver has no port.")
  return `http://127.0.0.1:${address.port}`
})

// With 410, a receiver says it is permanently gone.
const gone = 410

// How long the disabling may take, in seconds.
const disablePatience = 10

const register = (project_id: string, url: string) =>
  callApi(({ webhooks }, options) =>
    webhooks.create({ project_id, url, event_types: ["webhook.ping"] }, options),
  ).pipe(
    Effect.mapError((failure: Failure) =>
      failure.code === "VALIDATION_ERROR"
        ? operationFailed(
            `${failure.message} To see it, use a server that may send to this machine: tenure dev, or WEBHOOK_ALLOWED_NETWORKS=127.0.0.0/8.`,
          )
        : failure,
    ),
  )

const unregister = (project_id: string, webhook_id: string) =>
  Effect.ignore(
    callApi(({ webhooks }, options) => webhooks.delete({ project_id, webhook_id }, options)),
  )

/** Creates a temporary webhook and disables it: its receiver answers 410. */
const disableWebhookByFailing = Effect.fnUntraced(function* (project_id: string) {
  const url = yield* listenOnLoopback(() => gone)
  const { data } = yield* Effect.acquireRelease(register(project_id, url), (registered) =>
    unregister(project_id, registered.data.id),
  )
  const webhook = { project_id, webhook_id: data.id }
  const { next } = yield* callApi(({ events }, options) => events.list({ project_id }, options))
  yield* callApi(({ webhooks }, options) => webhooks.ping(webhook, options))
  const disabled = {
    project_id,
    types: "webhook.disabled",
    after: next,
    wait: String(disablePatience),
  }
  yield* callApi(({ events }, options) => events.list(disabled, options))
  const found = yield* callApi(({ webhooks }, options) => webhooks.health({ project_id }, options))
  if (!found.data.some(({ disabled_at, id }) => id === data.id && disabled_at !== null))
    return yield* operationFailed(
      `Nothing has reached this machine in ${disablePatience} s. Does a server run here that dispatches?`,
    )
}, Effect.scoped)

const type = Argument.String("type").pipe(
  Argument.withDescription(
    "One of Tenure's types, such as membership.extended, or one of your own",
  ),
)

const user = Flag.String("user").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription(
    "A user to add as a member for the example, and to remove after it; must not be a member yet",
  ),
  Flag.withDefault("0"),
)

const parsed = Option.liftThrowable(parseUnrounded)

const dataExpected = `JSON, such as '{"amount":100}', with numbers beyond 2^53 as text`

const commandData = Flag.String("data").pipe(
  Flag.withMetavar("JSON"),
  Flag.withDescription("The data of an event of your own"),
  Flag.filterMap(parsed, () => dataExpected),
  Flag.optional,
)

const reminder = Flag.String("reminder").pipe(
  Flag.withMetavar("DURATION"),
  Flag.withDescription("For membership.expiring: a reminder of the server; by default, 1 day"),
  Flag.withDefault("1 day"),
  Flag.filterMap(
    (text) => Result.getSuccess(Setting.duration().read(text, "")),
    () => "a duration such as 3 days",
  ),
)

interface Given {
  readonly project: string
  readonly user: string
  /** In milliseconds. */
  readonly reminder: number
}

const farFuture = "2099-01-01T00:00:00.000Z"

/** Makes an event happen to an example member. */
type Act = (client: Client, member: Member, options: CallOptions) => Promise<unknown>

interface Member {
  readonly project_id: string
  readonly user_id: string
}

// Identifies a member left behind by a killed run.
const reason = "an example of tenure trigger"

// Imports have no reason; instead, this exact millisecond identifies the member.
const exampleEnd = "2099-01-01T00:00:00.042Z"

const grant: Act = ({ memberships }, member, options) =>
  memberships.grant({ ...member, end_date: farFuture, reason }, options)

const grantUntil =
  (fromNow: number): Act =>
  ({ memberships }, member, options) => {
    const end_date = new Date(Date.now() + fromNow).toISOString()
    return memberships.grant({ ...member, end_date, reason }, options)
  }

const pause: Act = ({ memberships }, member, options) =>
  memberships.pause({ ...member, reason }, options)

const acts: Readonly<Record<string, ReadonlyArray<Act>>> = {
  "membership.granted": [grant],
  "membership.extended": [
    grant,
    ({ memberships }, member, options) =>
      memberships.extend({ ...member, extend: farFuture, reason }, options),
  ],
  "membership.paused": [grant, pause],
  "membership.resumed": [
    grant,
    pause,
    ({ memberships }, member, options) => memberships.resume({ ...member, reason }, options),
  ],
  "membership.ended": [grant],
  "memberships.imported": [
    ({ memberships }, { project_id, user_id }, options) =>
      memberships.import({ project_id, lines: [{ user_id, end_date: exampleEnd }] }, options),
  ],
}

const isMember = (member: Member) =>
  callApi(({ memberships }, options) => memberships.get(member, options)).pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ code }) => code === "MEMBERSHIP_NOT_FOUND",
      () => Effect.succeed(false),
    ),
  )

// Excludes announcements and bulk extensions: their author is not the member's.
const isOwnChange = ({ action }: MembershipChange): boolean =>
  action === "granted" || action === "imported" || action === "extended"

const isExample = ({ action, reason: given, to }: MembershipChange): boolean =>
  given === reason || (action === "imported" && to === exampleEnd)

/** Tells whether a member is an example from an earlier run. */
const isLeftOver = (member: Member) =>
  Effect.map(
    callApi(({ memberships }, options) => memberships.history(member, options)),
    (page) => page.data.filter(isOwnChange).slice(0, 1).some(isExample),
  )

/** Ends the example's membership, if any. */
const end = (member: Member) =>
  callApi(({ memberships }, options) => memberships.end(member, options)).pipe(
    Effect.asVoid,
    Effect.catchIf(
      ({ code }) => code === "MEMBERSHIP_NOT_FOUND",
      () => Effect.void,
    ),
  )

/** Ends a membership left behind by a killed run. Fails if the user is a real member. */
const clear = Effect.fnUntraced(function* (member: Member) {
  if (!(yield* isMember(member))) return
  if (!(yield* isLeftOver(member)))
    return yield* operationFailed(
      `${member.user_id} is already a member. Pass a --user that is not.`,
    )
  yield* end(member)
})

// A reminder must come after the grant, even if the server's clock is ahead.
const untilReminder = 2000

// Several times as long as an idle server needs.
const patience = "7 seconds"

const unannounced = operationFailed(
  "The server has announced nothing: it needs the option expiry and, for membership.expiring, the reminder that --reminder names.",
)

const announcements: ReadonlySet<string> = new Set([
  "membership.expiring",
  "membership.overdue",
  "membership.expired",
])

/** Waits for the announcement, if this type is announced. */
const announced = (of: string, member: Member) => {
  if (!announcements.has(of)) return Effect.void
  const isAnnounced = Effect.map(
    callApi(({ memberships }, options) => memberships.history({ ...member, limit: 1 }, options)),
    (page) => page.data.some(({ action }) => `membership.${action}` === of),
  )
  return Effect.repeat(isAnnounced, {
    until: (is) => is,
    schedule: Schedule.spaced("100 millis"),
  }).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(unannounced) }),
    Effect.asVoid,
  )
}

/** Performs the steps on a temporary member, and removes it even after a failure or an interrupt. */
const perform = Effect.fnUntraced(function* (of: string, steps: ReadonlyArray<Act>, given: Given) {
  const member = { project_id: given.project, user_id: given.user }
  yield* clear(member)
  yield* Effect.forEach(
    steps,
    // Without this, the server might carry out an interrupted request after the one ending the
    // membership.
    (act) => Effect.uninterruptible(callApi((client, options) => act(client, member, options))),
    { discard: true },
  ).pipe(
    Effect.andThen(announced(of, member)),
    Effect.onExit((exit) => (Exit.isSuccess(exit) ? end(member) : Effect.ignore(end(member)))),
  )
})

const extendAll = Effect.fnUntraced(function* (project_id: string) {
  const found = yield* callApi(({ projects }, options) => projects.get({ project_id }, options))
  if (found.data.memberships > 0)
    return yield* operationFailed(
      `It would extend all members of ${project_id}: use a project without any, or tenure extend-all.`,
    )
  yield* callApi(({ memberships }, options) =>
    memberships.extendAll({ project_id, extend: farFuture }, options),
  )
})

const pingAll = Effect.fnUntraced(function* (project_id: string) {
  const found = yield* callApi(({ webhooks }, options) => webhooks.list({ project_id }, options))
  yield* Effect.forEach(found.data, ({ id }) =>
    callApi(({ webhooks }, options) => webhooks.ping({ project_id, webhook_id: id }, options)),
  )
})

/** Returns for how long members of a project are still active after their end dates, in milliseconds. */
const findGrace = (project_id: string) =>
  Effect.map(
    callApi(({ projects }, options) => projects.get({ project_id }, options)),
    ({ data: { grace } }) => (grace === null ? 0 : (fixedMillis(DurationText(grace)) ?? 0)),
  )

/** Lets a member end, and, if the project has grace, stay active or not. */
const endItself = Effect.fnUntraced(function* (of: string, given: Given) {
  const grace = yield* findGrace(given.project)
  if (of === "membership.overdue" && grace === 0)
    return yield* operationFailed(
      `${given.project} has no grace: members expire at their end dates. See tenure projects update --grace.`,
    )
  yield* perform(of, [grantUntil(of === "membership.overdue" ? 0 : -grace)], given)
})

const happen = (of: string, given: Given, content: Option.Option<unknown>) => {
  const steps = acts[of]
  if (steps !== undefined) return perform(of, steps, given)
  switch (of) {
    case "membership.expiring":
      return perform(of, [grantUntil(given.reminder + untilReminder)], given)
    case "membership.overdue":
    case "membership.expired":
      return endItself(of, given)
    case "memberships.extended":
      return extendAll(given.project)
    case "webhook.ping":
      return pingAll(given.project)
    case "webhook.failing":
      return operationFailed(
        "webhook.failing takes days of failed attempts. To see it, run tenure dev --from FILE --fail HOST=503 --at +5d.",
      )
    case "webhook.disabled":
      return disableWebhookByFailing(given.project)
    default: {
      const example = Option.getOrElse(content, () => ({ example: true }))
      return callApi(({ events }, options) =>
        events.publish({ project_id: given.project, type: of, data: example }, options),
      )
    }
  }
}

/** The command. */
export const triggerCommand = Command.make(
  "trigger",
  { type, project: projectFlag, user, data: commandData, reminder },
  (given) =>
    Effect.andThen(
      happen(given.type, given, given.data),
      printDone({ type: given.type }, `Triggered ${given.type}.`),
    ),
).pipe(
  Command.withDescription("Makes an event of any type happen, with an example member"),
  Command.withExamples([
    { command: "tenure trigger membership.extended --project shop" },
    { command: `tenure trigger payment.completed --project shop --data '{"amount":100}'` },
  ]),
  connected,
)
