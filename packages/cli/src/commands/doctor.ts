/** `tenure doctor`: finds problems and advises. */

import type { Identity, Status } from "@tenure/client"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { Api, callApi } from "../support/api.ts"
import { type Failure, exitCodes, operationFailed } from "../support/failure.ts"
import { jsonFlag, printResult } from "../support/output.ts"
import {
  type ConnectionTarget,
  type DatabaseTarget,
  resolveTarget,
  targetFlags,
} from "../support/target.ts"
import { pluralize, printable } from "../support/text.ts"
import type * as Upkeep from "./database-upkeep.ts"

/** A check's result, with advice if there is a problem. */
export interface Finding {
  readonly check: string
  readonly found: string
  /** A problem makes the command fail; a warning is for people to know. */
  readonly state: "ok" | "warning" | "problem"
  readonly advice: string | null
}

const well = (check: string, found: string): Finding => ({
  check,
  found,
  state: "ok",
  advice: null,
})

const wrong = (check: string, found: string, advice: string): Finding => ({
  check,
  found,
  state: "problem",
  advice,
})

// Not a fault in Tenure: the problem is over, or a receiver or client has to fix it.
const notable = (check: string, found: string, advice: string): Finding => ({
  ...wrong(check, found, advice),
  state: "warning",
})

// Receivers refuse timestamps more than five minutes off.
const maxSkew = 30_000

/**
 * Judges a server's or database's clock.
 * @param skew - how many milliseconds it is ahead
 */
export const judgeClock = (skew: number): Finding => {
  const found = `${Math.round(Math.abs(skew) / 1000)} s apart from here`
  return Math.abs(skew) <= maxSkew
    ? well("clock", found)
    : wrong("clock", found, "Set both by NTP: end dates and signatures depend on the time.")
}

/** Judges pending migrations. */
export const judgeMigrations = (pending: ReadonlyArray<number>): Finding => {
  if (pending.length === 0) return well("migrations", "all applied")
  return pending.includes(1)
    ? wrong(
        "migrations",
        "the schema has no tables of Tenure",
        "Check the database and --schema; tenure migrate makes the tables.",
      )
    : wrong("migrations", `not applied: ${pending.join(", ")}`, "Run tenure migrate.")
}

const judgeStores = ({ stores }: Status): Finding => {
  const silent = Object.entries(stores).flatMap(([name, answers]) => (answers ? [] : [name]))
  if (silent.length === 0) return well("stores", "all answer")
  const isOfLimits = silent.every((name) => name === "rate_limits")
  return wrong(
    "stores",
    `no answer: ${silent.join(", ")}`,
    isOfLimits
      ? "Check the Redis at REDIS_URL, or the database if you use no Redis: limits are kept there."
      : "Look at the database and its log.",
  )
}

// Normally, due attempts start within a second.
const longestDue = 60_000

const secondsOf = (millis: number | null): number => Math.round((millis ?? 0) / 1000)

const judgeBacklog = ({ backlog }: Status): Finding => {
  if (backlog === null)
    return wrong("deliveries", "unknown", "The store does not answer: look at the database.")
  const { due_for_ms, late_for_ms, waiting } = backlog
  if ((late_for_ms ?? 0) > longestDue)
    return wrong(
      "deliveries",
      `${waiting} waiting, one for ${secondsOf(late_for_ms)} s for a server to send it`,
      "Check that a server runs that dispatches, and add processes.",
    )
  const found = `${waiting} waiting, the oldest due for ${secondsOf(due_for_ms)} s`
  return (due_for_ms ?? 0) <= longestDue
    ? well("deliveries", found)
    : notable(
        "deliveries",
        `${found}, because of its receiver`,
        "It fails, is slow, or has a rate: see tenure webhooks list. More processes would not help.",
      )
}

const judgeGivenUp = ({ failed_deliveries }: Status): Finding =>
  failed_deliveries === 0
    ? well("given up", "no delivery")
    : notable(
        "given up",
        `${failed_deliveries ?? "unknown how many"} deliveries`,
        "See tenure webhooks deliveries --state failed; then webhooks replay --since.",
      )

const judgeDisabled = ({ disabled_webhooks }: Status, disabled: ReadonlyArray<string>): Finding => {
  if (disabled_webhooks === 0) return well("webhooks", "none disabled")
  const count = `${disabled_webhooks ?? "unknown how many"} disabled`
  return wrong(
    "webhooks",
    disabled.length === 0 ? count : `${count}: ${disabled.join(", ")}`,
    "See tenure webhooks get and deliveries; then webhooks enable, and replay --since.",
  )
}

const judgeFailing = (failing: ReadonlyArray<string> | undefined): Finding => {
  if (failing === undefined)
    return wrong("attempts", "unknown", "The store does not answer: look at the database.")
  return failing.length === 0
    ? well("attempts", "no webhook fails")
    : notable(
        "attempts",
        `fail for: ${failing.join(", ")}`,
        "See tenure webhooks deliveries. Attempts go on; replay --event makes one now.",
      )
}

/** Names up to 50 webhooks with problems: disabled ones or the others. */
const ailingOf = (
  { webhooks_needing_attention }: Status,
  isDisabled: boolean,
): ReadonlyArray<string> | undefined =>
  webhooks_needing_attention?.flatMap(({ id, project_id, reason }) =>
    (reason === "disabled") === isDisabled ? [`${id} of ${project_id}`] : [],
  )

const limiting = {
  local: "the server limits requests by itself",
  open: "the server does not limit requests",
  closed: "the server answers requests 503",
} as const

const judgeLimiting = ({ rate_limiting }: Status): Finding =>
  rate_limiting === "store"
    ? well("limiting", "by the store")
    : wrong(
        "limiting",
        limiting[rate_limiting],
        "The store of rate limits fails: look at it, for example at Redis, and at the server's log, which says why.",
      )

const judgeSuspensions = ({ suspended_keys }: Status): Finding =>
  suspended_keys.length === 0
    ? well("limits", "no key suspended")
    : notable(
        "limits",
        `suspended: ${suspended_keys.join(", ")}`,
        "These clients keep exceeding the limits: have them honour Retry-After, or raise the limits.",
      )

const judgeEncryption = (
  { missing_encryption_keys }: Status,
  where: ConnectionTarget["_tag"],
): Finding => {
  if (missing_encryption_keys === null)
    return wrong("encryption", "unknown", "The store does not answer: look at the database.")
  if (missing_encryption_keys.length === 0) return well("encryption", "no key missing")
  const found = `no right key: ${missing_encryption_keys.join(", ")}`
  return where === "Server"
    ? wrong(
        "encryption",
        `the server has ${found}`,
        "Give it the keys in TENURE_ENCRYPTION_KEY; without them, nothing is sent to the webhooks. Or see tenure webhooks list, and webhooks rotate.",
      )
    : // Only the servers need them.
      notable(
        "encryption",
        `this command has ${found}`,
        "The servers need these keys. To have them checked here, set TENURE_ENCRYPTION_KEY.",
      )
}

/** Judges a server's status and its webhooks with problems. */
export const judgeStatus = (
  status: Status,
  where: ConnectionTarget["_tag"],
): ReadonlyArray<Finding> => [
  judgeStores(status),
  judgeBacklog(status),
  judgeGivenUp(status),
  judgeDisabled(status, ailingOf(status, true) ?? []),
  judgeFailing(ailingOf(status, false)),
  judgeLimiting(status),
  judgeSuspensions(status),
  judgeEncryption(status, where),
]

const judgeKey = ({ projects, role }: Identity): Finding => {
  const found = `${role}, for ${projects === "all" ? "all projects" : projects.join(", ")}`
  return role === "admin" && projects === "all"
    ? well("key", found)
    : wrong("key", found, "Use the key of an admin for all projects to have the rest checked.")
}

const ofFailure = (check: string, { kind, message }: Failure): Finding =>
  wrong(
    check,
    message,
    kind === "unavailable"
      ? "Look at the database, its log, and the network in between."
      : "See the message.",
  )

const withoutDatabase = (request = ""): Finding =>
  wrong(
    "server",
    "it runs, but its database does not answer",
    `Look at the database, and at the server's log, which says why${request}. To check the database from here, set TENURE_DATABASE_URL.`,
  )

/** Tells whether no store in the database answers. Limits may be elsewhere. */
const isWithoutDatabase = ({ stores: { rate_limits: _, ...stores } }: Status): boolean =>
  Object.values(stores).every((answers) => !answers)

/** Says how far a call to a server got: nowhere, to another program, to the server, or to its database. */
const ofServerFailure = (failure: Failure): Finding => {
  const { code, message, network, requestId, status } = failure
  if (network !== undefined)
    return wrong("server", `nobody answers (${network.reason})`, network.advice)
  if (code === "TIMEOUT")
    return wrong(
      "server",
      `there is a connection, but no answer. ${message}`,
      "Look at the server and what is in between: it may be overloaded, or stopped.",
    )
  if (code === "SERVICE_UNAVAILABLE") {
    return withoutDatabase(requestId === undefined ? "" : ` for the request ${requestId}`)
  }
  if (code === "INVALID_RESPONSE")
    return (status ?? 0) >= 500
      ? wrong(
          "server",
          `something else answers ${status}, for example a proxy`,
          "Look at the proxy's log, and whether the server behind it runs.",
        )
      : wrong(
          "server",
          `what answers there is not Tenure. ${message}`,
          "Check the URL, with its path: that of BASE_PATH, without /v2.",
        )
  return ofFailure("API", failure)
}

const findingOf = (where: ConnectionTarget["_tag"], failure: Failure): Finding =>
  where === "Server" ? ofServerFailure(failure) : ofFailure("API", failure)

const skewOf = Effect.map(Api, ({ latest }): number | undefined => {
  const { at = 0, headers } = latest() ?? {}
  const date = Date.parse(headers?.get("date") ?? "")
  return Number.isNaN(date) ? undefined : date - at
})

/** Checks the server, or the API in this process. */
const checkApi = Effect.fnUntraced(
  function* (where: ConnectionTarget["_tag"]) {
    const started = Date.now()
    const { data: identity } = yield* callApi((client, options) => client.identity.get({}, options))
    const reached = well("API", `answers in ${Date.now() - started} ms`)
    const skew = yield* skewOf
    const findings = [reached, judgeKey(identity)]
    if (skew !== undefined) findings.push(judgeClock(skew))
    if (identity.role !== "admin" || identity.projects !== "all") return findings
    const { data: status } = yield* callApi((client, options) => client.status.get({}, options))
    // The key is known to the server from a call before.
    if (where === "Server" && isWithoutDatabase(status)) return [...findings, withoutDatabase()]
    return [...findings, ...judgeStatus(status, where)]
  },
  (checks, where) =>
    checks.pipe(
      Effect.provide(Api.layer),
      Effect.catchTag("Failure", (failure) => Effect.succeed([findingOf(where, failure)])),
    ),
)

/** Findings about databases, and whether the API can use them. */
interface Checked {
  readonly isUsable: boolean
  readonly findings: ReadonlyArray<Finding>
}

const unusable = (failure: Failure): Effect.Effect<Checked> =>
  Effect.succeed({ isUsable: false, findings: [ofFailure("database", failure)] })

/** Checks a database. */
const checkDatabase = Effect.fnUntraced(
  function* (upkeep: typeof Upkeep, url: string, schema: string | undefined) {
    const { pending, skew } = yield* upkeep.inspectDatabase(url, schema)
    return {
      isUsable: pending.length === 0,
      findings: [judgeClock(skew), judgeMigrations(pending)],
    }
  },
  Effect.catchTag("Failure", unusable),
)

const named = (name: string, { findings, isUsable }: Checked): Checked => ({
  isUsable,
  findings: findings.map((finding) => ({ ...finding, check: `${finding.check} of ${name}` })),
})

/** Checks a database, or the schemas on several servers. */
const checkDatabases = Effect.fnUntraced(
  function* ({ schema, url }: DatabaseTarget) {
    const upkeep = yield* Effect.promise(() => import("./database-upkeep.ts"))
    const servers = yield* upkeep.serversOf(url)
    if (servers === undefined) return yield* checkDatabase(upkeep, url, schema)
    const all = yield* Effect.forEach(yield* upkeep.schemasOf(servers, schema), (one) =>
      Effect.map(checkDatabase(upkeep, one.url, one.name), (checked) => named(one.name, checked)),
    )
    return {
      isUsable: all.every(({ isUsable }) => isUsable),
      findings: all.flatMap(({ findings }) => findings),
    }
  },
  Effect.catchTag("Failure", unusable),
)

const checkAll = Effect.gen(function* () {
  const place = yield* resolveTarget
  if (place._tag === "Server") return yield* checkApi("Server")
  const { findings, isUsable } = yield* checkDatabases(place)
  return isUsable ? [...findings, ...(yield* checkApi("Database"))] : findings
})

/** Prints a finding on one line and its advice on the next, as sentences a terminal may wrap. */
const linesOf = (
  { advice, check, found, state }: Finding,
  checkWidth: number,
): ReadonlyArray<string> => {
  const line = `${state.padEnd(7)}  ${check.padEnd(checkWidth)}  ${found}`
  return [line, ...(advice === null ? [] : [`${" ".repeat(9)}${advice}`])].map(printable)
}

/** The command. */
export const doctorCommand = Command.make(
  "doctor",
  {},
  Effect.fnUntraced(function* () {
    const findings = yield* checkAll
    const checkWidth = Math.max(...findings.map(({ check }) => check.length))
    for (const finding of findings) yield* printResult(finding, () => linesOf(finding, checkWidth))
    const problems = findings.filter(({ state }) => state === "problem").length
    if (problems > 0)
      return yield* operationFailed(`${problems} of ${pluralize(findings.length, "check")} failed.`)
  }),
).pipe(
  Command.withDescription(
    `Checks a server or a database, and says what to do; the exit code is ${exitCodes.failed} if there is a problem`,
  ),
  Command.withExamples([{ command: "tenure doctor" }]),
  Command.withGlobalFlags([jsonFlag, ...targetFlags]),
)
