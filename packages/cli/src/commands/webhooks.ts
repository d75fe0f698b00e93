/** `tenure webhooks`. */

import type {
  AnsweredAttempt,
  Delivery,
  ReplayManyRequest,
  ShownDelivery,
  WebhookHealth,
} from "@tenure/client"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { callApi } from "../support/api.ts"
import { describeDryRun, dryRunFlag } from "../support/dry-run.ts"
import { Failure, usageFailure } from "../support/failure.ts"
import { booleanFlag, dateFlag, projectFlag, webhookId } from "../support/flags.ts"
import { readTextFile, requireConfirmation, yesFlag } from "../support/input.ts"
import {
  callAndPrintDone,
  callAndPrintRecord,
  connected,
  printDone,
  printItems,
  printList,
  printRecord,
  printResult,
} from "../support/output.ts"
import { formatAge, pluralize } from "../support/text.ts"

const webhook = { webhook: webhookId, project: projectFlag }

interface Given {
  readonly webhook: string
  readonly project: string
}

const inputOf = (given: Given) => ({ project_id: given.project, webhook_id: given.webhook })

const showSecret = booleanFlag(
  "show-secret",
  "Also shows the secret that signs notifications; the audit trail says who was shown it",
)

/** Writes the latest attempt, and when the next one is due: `HTTP 500 · 2 min ago · next in 4 min`. */
export const attemptLine = (
  { last_attempt, next_attempt_at }: Pick<WebhookHealth, "last_attempt" | "next_attempt_at">,
  now: number,
): string | null => {
  const last =
    last_attempt === null
      ? []
      : [
          last_attempt.error ?? `HTTP ${last_attempt.status}`,
          `${formatAge(now - Date.parse(last_attempt.at))} ago`,
        ]
  const wait = next_attempt_at === null ? undefined : Date.parse(next_attempt_at) - now
  const next = wait === undefined ? [] : [wait > 0 ? `next in ${formatAge(wait)}` : "next now"]
  return last.length + next.length === 0 ? null : [...last, ...next].join(" · ")
}

/** A webhook in a line, with how its latest attempts went. */
const lineOf = (health: WebhookHealth) => {
  const { disabled_at, failing_since, failures, id, url } = health
  const state = failing_since === null ? "enabled" : "failing"
  return {
    id,
    state: disabled_at === null ? state : "disabled",
    last_attempt: attemptLine(health, Date.now()),
    url,
    since: disabled_at ?? failing_since,
    failures,
  }
}

/** A webhook with a line for each field. */
const recordOf = (health: WebhookHealth) => ({
  ...health,
  last_attempt: attemptLine(health, Date.now()),
})

const list = Command.make("list", { project: projectFlag }, ({ project: project_id }) =>
  Effect.flatMap(
    callApi((client, options) => client.webhooks.health({ project_id }, options)),
    ({ data }) => printItems(Stream.fromIterable(data), lineOf),
  ),
).pipe(
  Command.withDescription("Lists the webhooks of a project, and which of them fail"),
  Command.withExamples([{ command: "tenure webhooks list --project shop" }]),
)

/** Finds a webhook without its secret, because a disclosure is audited. */
const find = Effect.fnUntraced(function* (given: Given) {
  const { data } = yield* callApi((client, options) =>
    client.webhooks.health({ project_id: given.project }, options),
  )
  return (
    data.find(({ id }) => id === given.webhook) ??
    (yield* new Failure({
      kind: "notFound",
      message: "The webhook was not found.",
      code: "WEBHOOK_NOT_FOUND",
    }))
  )
})

const get = Command.make("get", { ...webhook, showSecret }, (given) =>
  given.showSecret
    ? callAndPrintRecord(
        (client, options) => client.webhooks.get(inputOf(given), options),
        ({ secret, ...found }) => ({ ...recordOf(found), secret }),
      )
    : Effect.flatMap(find(given), (found) => printRecord(found, recordOf)),
).pipe(
  Command.withDescription("Shows a webhook, and how its latest attempts went"),
  Command.withExamples([
    { command: "tenure webhooks get ID --project shop" },
    { command: "tenure webhooks get ID --project shop --show-secret" },
  ]),
)

const types = Flag.String("type").pipe(
  Flag.withMetavar("TYPE"),
  Flag.withDescription("A type of events that it is sent; can be repeated; all types by default"),
  Flag.atLeast(0),
)

const ordered = booleanFlag(
  "ordered",
  "Sends a member's events one after another: one that fails delays the others for up to three days",
)

const rate = Flag.Int("rate").pipe(
  Flag.withMetavar("NUMBER"),
  Flag.withDescription("How many attempts start in a second at most, 1 to 10,000"),
  Flag.optional,
)

const description = Flag.String("description").pipe(
  Flag.withMetavar("TEXT"),
  Flag.withDescription("What it is for, in 1 to 200 characters; none if the text is empty"),
  Flag.optional,
)

const headers = Flag.String("header").pipe(
  Flag.withMetavar("'NAME: VALUE'|@FILE"),
  Flag.withDescription(
    "A request header to send with every notification, or a file with one in each line; can be repeated",
  ),
  Flag.atLeast(0),
)

/** Reads headers as curl takes them. Other users can read arguments, but no file. The API checks names and values. */
const headersOf = Effect.fnUntraced(function* (given: ReadonlyArray<string>) {
  const pairs: Array<readonly [name: string, value: string]> = []
  const lines = yield* Effect.forEach(given, (one) =>
    one.startsWith("@")
      ? Effect.map(readTextFile(one.slice(1)), (text) => text.split("\n").filter(Boolean))
      : Effect.succeed([one]),
  )
  for (const line of lines.flat()) {
    const [, name, value] = /^([^:]+):(.*)$/s.exec(line) ?? []
    if (name === undefined || value === undefined) {
      // It may have a secret in it.
      return yield* usageFailure("A header is written as 'Name: value'.")
    }
    pairs.push([name.trim(), value.trim()])
  }
  return pairs
})

const create = Command.make(
  "create",
  {
    url: Argument.String("url").pipe(Argument.withDescription("Where events go")),
    project: projectFlag,
    types,
    ordered,
    rate,
    description,
    headers,
  },
  Effect.fnUntraced(function* (given) {
    const own = yield* headersOf(given.headers)
    yield* callAndPrintRecord(
      (client, options) =>
        client.webhooks.create(
          {
            project_id: given.project,
            url: given.url,
            event_types: given.types.length === 0 ? undefined : given.types,
            ...(given.ordered && { ordered: true }),
            rate: Option.getOrUndefined(given.rate),
            description: Option.getOrUndefined(given.description) || undefined,
            headers: own.length === 0 ? undefined : Object.fromEntries(own),
          },
          options,
        ),
      ({ id, secret, url }) => ({ id, url, secret }),
    )
  }),
).pipe(
  Command.withDescription("Registers a URL, and shows the secret for its receiver"),
  Command.withExamples([
    { command: "tenure webhooks create https://example.com/hook --project shop" },
    {
      command:
        "tenure webhooks create https://example.com/hook --project shop --type membership.extended",
    },
  ]),
)

const edit = Command.make(
  "edit",
  {
    ...webhook,
    url: Flag.String("url").pipe(
      Flag.withDescription("Where events go from now on, those that wait included"),
      Flag.optional,
    ),
    types: types.pipe(
      Flag.withDescription("A type of events that it is sent from now on; can be repeated"),
    ),
    allTypes: booleanFlag("all-types", "Sends all types from now on"),
    ordered,
    unordered: booleanFlag("unordered", "Sends a member's events without waiting for earlier ones"),
    rate,
    anyRate: booleanFlag("any-rate", "Starts attempts without a limit for each second"),
    description,
    headers,
    removedHeaders: Flag.String("remove-header").pipe(
      Flag.withMetavar("NAME"),
      Flag.withDescription("A request header not to send any more; can be repeated"),
      Flag.atLeast(0),
    ),
    disable: booleanFlag("disable", "Stops sending at once; what waits stays waiting"),
    enable: booleanFlag("enable", "Sends what waits, and all that happens from then on"),
  },
  Effect.fnUntraced(function* (given) {
    if (given.disable && given.enable) return yield* usageFailure("Give --disable or --enable.")
    if (given.allTypes && given.types.length > 0) {
      return yield* usageFailure("Give --type or --all-types.")
    }
    if (given.ordered && given.unordered) {
      return yield* usageFailure("Give --ordered or --unordered.")
    }
    if (given.anyRate && Option.isSome(given.rate)) {
      return yield* usageFailure("Give --rate or --any-rate.")
    }
    const newTypes = given.types.length === 0 ? undefined : given.types
    const text = Option.getOrUndefined(given.description)
    const changed = [
      ...given.removedHeaders.map((name) => [name, null] as const),
      ...(yield* headersOf(given.headers)),
    ]
    const update = {
      url: Option.getOrUndefined(given.url),
      event_types: given.allTypes ? null : newTypes,
      ordered: given.ordered || (given.unordered ? false : undefined),
      rate: given.anyRate ? null : Option.getOrUndefined(given.rate),
      description: text === "" ? null : text,
      headers: changed.length === 0 ? undefined : Object.fromEntries(changed),
      disabled: given.disable || (given.enable ? false : undefined),
    }
    if (Object.values(update).every((one) => one === undefined)) {
      return yield* usageFailure("Say what to change, for example --url or --disable.")
    }
    yield* callAndPrintRecord(
      (client, options) => client.webhooks.update({ ...inputOf(given), ...update }, options),
      recordOf,
    )
  }),
).pipe(
  Command.withDescription("Changes a webhook; its id, its secret and what waits stay"),
  Command.withExamples([
    { command: "tenure webhooks edit ID --project shop --url https://example.com/new" },
    { command: "tenure webhooks edit ID --project shop --disable" },
    { command: "tenure webhooks edit ID --project shop --header 'X-Tenant: blue'" },
  ]),
)

const remove = Command.make("delete", webhook, (given) =>
  callAndPrintDone(
    (client, options) => client.webhooks.delete(inputOf(given), options),
    `Deleted ${given.webhook}.`,
  ),
).pipe(
  Command.withDescription("Deletes a webhook: nothing further is sent to it"),
  Command.withExamples([{ command: "tenure webhooks delete ID --project shop" }]),
)

const ping = Command.make("ping", webhook, (given) =>
  callAndPrintDone(
    (client, options) => client.webhooks.ping(inputOf(given), options),
    ({ event_id }) =>
      `Sending event ${event_id}. See what became of it: tenure webhooks deliveries ${given.webhook}`,
  ),
).pipe(
  Command.withDescription("Sends a webhook.ping to a webhook"),
  Command.withExamples([{ command: "tenure webhooks ping ID --project shop" }]),
)

const rotate = Command.make("rotate", webhook, (given) =>
  callAndPrintRecord(
    (client, options) => client.webhooks.rotate(inputOf(given), options),
    (rotated) => ({ ...rotated }),
  ),
).pipe(
  Command.withDescription("Replaces the secret; the previous one also signs for a day"),
  Command.withExamples([{ command: "tenure webhooks rotate ID --project shop" }]),
)

const enable = Command.make("enable", webhook, (given) =>
  callAndPrintDone(
    (client, options) => client.webhooks.enable(inputOf(given), options),
    `Enabled ${given.webhook}.`,
  ),
).pipe(
  Command.withDescription("Enables a webhook that was disabled, and sends what waits"),
  Command.withExamples([{ command: "tenure webhooks enable ID --project shop" }]),
)

const state = Flag.Literals("state", ["waiting", "delivered", "failed", "cancelled"]).pipe(
  Flag.withDescription("Only deliveries in this state"),
  Flag.optional,
)

/** Prints a delivery on one line, with its latest attempt's error or status. */
const rowOf = ({ attempts, due_at, event_id, state: of, type }: Delivery) => {
  const latest = attempts.at(-1)
  return {
    event_id,
    type,
    state: of,
    attempts: attempts.length,
    result: latest?.error ?? latest?.status,
    latest: latest?.at,
    due_at,
  }
}

const deliveries = Command.make("deliveries", { ...webhook, state }, (given) =>
  printList(
    (client) =>
      client.webhooks.deliveries({
        ...inputOf(given),
        state: Option.getOrUndefined(given.state),
      }),
    rowOf,
  ),
).pipe(
  Command.withDescription("Lists what was sent to a webhook, newest first"),
  Command.withExamples([
    { command: "tenure webhooks deliveries ID --project shop --state failed" },
  ]),
)

const rowOfAttempt = ({ at, duration_ms, error, response_body, status }: AnsweredAttempt): string =>
  [
    `${at}, ${duration_ms} ms`,
    ...(status === null ? [] : [`answered ${status}`]),
    ...(error === null ? [] : [error]),
    ...(response_body === null ? [] : [`response: ${response_body}`]),
  ].join(", ")

/** A delivery with its request, and an entry for each attempt. */
const detailsOf = ({ attempts, request, ...delivery }: ShownDelivery) => ({
  ...delivery,
  request: `${request.method} ${request.url}`,
  headers: Object.entries(request.headers).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${value}`],
  ),
  body: request.body,
  ...Object.fromEntries(
    attempts.map((attempt, index) => [`attempt ${index + 1}`, rowOfAttempt(attempt)] as const),
  ),
})

const eventId = Argument.String("event").pipe(Argument.withDescription("The id of the event"))

const delivery = Command.make(
  "delivery",
  { webhook: webhookId, event: eventId, project: projectFlag },
  (given) =>
    callAndPrintRecord(
      (client, options) =>
        client.webhooks.delivery({ ...inputOf(given), event_id: given.event }, options),
      detailsOf,
    ),
).pipe(
  Command.withDescription(
    "Shows what was sent of an event, and what the receiver responded; the audit trail says who was shown it",
  ),
  Command.withExamples([
    {
      command: "tenure webhooks delivery ID 01a2043b-c2a2-70c7-8d28-19310d694169 --project shop",
    },
  ]),
)

const event = Flag.String("event").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("The event to send again"),
  Flag.optional,
)

const since = dateFlag("since", "Sends what the webhook has missed or not accepted since then")

const only = Flag.Literals("only", ["missed", "failed", "all"]).pipe(
  Flag.withDescription(
    "With --since: only events that were never sent, or given up; or all, also delivered ones",
  ),
  Flag.optional,
)

/** Sends many events again, after it has counted them. */
const replaySince = Effect.fnUntraced(function* (
  given: Given & { readonly dryRun: boolean },
  events: Omit<ReplayManyRequest, "project_id" | "webhook_id">,
) {
  const replayed = (dry_run: boolean) =>
    callApi(({ webhooks }, options) =>
      webhooks.replayMany({ ...inputOf(given), ...events, dry_run }, options),
    )
  if (given.dryRun) {
    const count = yield* replayed(true)
    return yield* printResult({ replayed: count }, () => [
      `${pluralize(count, "event")} would be sent again.`,
      ...describeDryRun(true),
    ])
  }
  if (!(yield* yesFlag)) {
    const count = yield* replayed(true)
    yield* requireConfirmation(
      `Send ${pluralize(count, "event")} to ${given.webhook} again?`,
      count === 0,
    )
  }
  const count = yield* replayed(false)
  yield* printDone({ replayed: count }, `${pluralize(count, "event is", "events are")} sent again.`)
})

const replay = Command.make(
  "replay",
  {
    ...webhook,
    event,
    since,
    types: types.pipe(
      Flag.withDescription(
        "With --since: only events of this type; can be repeated; by default, the types that the webhook takes",
      ),
    ),
    only,
    dryRun: dryRunFlag,
  },
  Effect.fnUntraced(function* (given) {
    const from = Option.getOrUndefined(given.since)
    if (Option.isSome(given.event) === (from !== undefined)) {
      return yield* usageFailure(
        "Give the event to send again, or the time since when: --event or --since.",
      )
    }
    if (from !== undefined) {
      return yield* replaySince(given, {
        since: from,
        types: given.types.length === 0 ? undefined : given.types,
        only: Option.getOrUndefined(given.only),
      })
    }
    if (given.dryRun || given.types.length > 0 || Option.isSome(given.only)) {
      return yield* usageFailure("--type, --only and --dry-run belong to --since.")
    }
    yield* callAndPrintDone(
      (client, options) =>
        client.webhooks.replay(
          { ...inputOf(given), event_id: Option.getOrUndefined(given.event) },
          options,
        ),
      ({ replayed }) => `${pluralize(replayed, "event is", "events are")} sent again.`,
    )
  }),
).pipe(
  Command.withDescription("Sends events again, also those that a webhook has missed"),
  Command.withExamples([
    {
      command:
        "tenure webhooks replay ID --project shop --event 01a2043b-c2a2-70c7-8d28-19310d694169",
    },
    { command: "tenure webhooks replay ID --project shop --since 2027-01-31 --dry-run" },
    { command: "tenure webhooks replay ID --project shop --since 2027-01-31 --only missed --yes" },
  ]),
)

const user = Flag.String("user").pipe(
  Flag.withMetavar("ID"),
  Flag.withDescription("Only events about this user"),
  Flag.optional,
)

const cancel = Command.make(
  "cancel",
  {
    ...webhook,
    types: types.pipe(
      Flag.withDescription("Only events of this type; can be repeated; by default, of all types"),
    ),
    since: dateFlag("since", "Only events from this time on"),
    until: dateFlag("until", "Only events before this time"),
    user,
    dryRun: dryRunFlag,
  },
  Effect.fnUntraced(function* (given) {
    const cancelled = (dry_run: boolean) =>
      Effect.map(
        callApi(({ webhooks }, options) =>
          webhooks.cancel(
            {
              ...inputOf(given),
              types: given.types.length === 0 ? undefined : given.types,
              since: Option.getOrUndefined(given.since),
              until: Option.getOrUndefined(given.until),
              user_id: Option.getOrUndefined(given.user),
              dry_run,
            },
            options,
          ),
        ),
        ({ data }) => data.total,
      )
    if (given.dryRun) {
      const total = yield* cancelled(true)
      return yield* printResult({ total }, () => [
        `${pluralize(total, "waiting event")} would not be sent.`,
        ...describeDryRun(true),
      ])
    }
    if (!(yield* yesFlag)) {
      const total = yield* cancelled(true)
      yield* requireConfirmation(
        `Cancel ${pluralize(total, "waiting event")} to ${given.webhook}?`,
        total === 0,
      )
    }
    const total = yield* cancelled(false)
    yield* printDone({ total }, `${pluralize(total, "event is", "events are")} not sent any more.`)
  }),
).pipe(
  Command.withDescription(
    "Cancels what waits for a webhook, except attempts in flight; each event can be replayed by its id",
  ),
  Command.withExamples([
    { command: "tenure webhooks cancel ID --project shop --type membership.expiring --dry-run" },
    { command: "tenure webhooks cancel ID --project shop --since 2027-01-31T09:00:00.000Z --yes" },
  ]),
)

/** The command. */
export const webhooksCommand = Command.make("webhooks").pipe(
  Command.withDescription("Webhooks, and what was sent to them"),
  Command.withSubcommands([
    list,
    get,
    create,
    edit,
    remove,
    ping,
    rotate,
    enable,
    deliveries,
    delivery,
    replay,
    cancel,
  ]),
  Command.withExamples([
    ...create.examples,
    ...deliveries.examples,
    ...replay.examples,
    ...cancel.examples,
  ]),
  connected,
)
