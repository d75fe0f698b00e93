/** `tenure keys`. */

import type { ApiKey } from "@tenure/client"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { usageFailure } from "../support/failure.ts"
import { booleanFlag, dateFlag } from "../support/flags.ts"
import { callAndPrintDone, callAndPrintRecord, connected, printList } from "../support/output.ts"

const projects = Flag.String("project").pipe(
  Flag.withAlias("p"),
  Flag.withMetavar("ID"),
  Flag.withDescription("A project that the key opens; can be repeated"),
  Flag.atLeast(0),
)

const isForAll = booleanFlag("all-projects", "Opens all projects, also those to come")

const role = Flag.Literals("role", ["client", "operator", "admin"]).pipe(
  Flag.withDescription("What its holder may do"),
  Flag.withDefault("client"),
)

const name = Flag.String("name").pipe(
  Flag.withDescription("What people call the key"),
  Flag.optional,
)

const expires = dateFlag("expires", "When the key expires; never by default")

const issue = Command.make(
  "issue",
  { projects, isForAll, role, name, expires },
  Effect.fnUntraced(function* (given) {
    if (given.isForAll === given.projects.length > 0)
      return yield* usageFailure("Give the projects that the key opens, or --all-projects.")
    yield* callAndPrintRecord(
      ({ apiKeys }, options) =>
        apiKeys.issue(
          {
            projects: given.isForAll ? "all" : given.projects,
            role: given.role,
            name: Option.getOrUndefined(given.name),
            expires_at: Option.getOrUndefined(given.expires),
          },
          options,
        ),
      (issued) => ({ ...issued }),
    )
  }),
).pipe(
  Command.withDescription("Issues a key, and shows its token this once"),
  Command.withExamples([
    { command: "tenure keys issue --project shop --role operator --name billing" },
    { command: "tenure keys issue --all-projects --role admin --expires 2027-12-31" },
  ]),
)

const stateOf = ({ expires_at, revoked_at }: ApiKey): string => {
  if (revoked_at !== null) return "revoked"
  return expires_at !== null && Date.parse(expires_at) <= Date.now() ? "expired" : "active"
}

/** A key in a line, with whether it can be used. */
const rowOf = (key: ApiKey) => {
  const { created_at, expires_at, id, last_used_at, name: called, projects: of, revoked_at } = key
  return {
    id,
    state: stateOf(key),
    role: key.role,
    name: called,
    projects: of,
    last_used_at,
    expires_at,
    revoked_at,
    created_at,
  }
}

const list = Command.make("list", {}, () =>
  printList(({ apiKeys }) => apiKeys.list({ limit: 1000 }), rowOf),
).pipe(
  Command.withDescription("Lists keys, also revoked and expired ones"),
  Command.withExamples([{ command: "tenure keys list --json" }]),
)

const revoke = Command.make(
  "revoke",
  { key: Argument.String("key").pipe(Argument.withDescription("The id of the key")) },
  ({ key }) =>
    callAndPrintDone(
      ({ apiKeys }, options) => apiKeys.revoke({ key_id: key }, options),
      `Revoked ${key}. Servers accept it for up to ten more seconds.`,
    ),
).pipe(
  Command.withDescription("Revokes a key for good"),
  Command.withExamples([{ command: "tenure keys revoke ID" }]),
)

/** The command. */
export const keysCommand = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([issue, list, revoke]),
  Command.withExamples([...issue.examples, ...list.examples]),
  connected,
)
