/** `tenure status`. */

import type { Status } from "@tenure/client"
import * as Command from "effect/cli/Command"
import { connected } from "./connection/connected.ts"
import * as Output from "./output/Output.ts"

const ageOf = (backlog: Status["backlog"]): string | null => {
  const millis = backlog?.due_for_ms ?? null
  return millis === null ? null : `${millis} ms`
}

const rowOf = ({
  backlog,
  disabled_webhooks,
  failed_deliveries,
  stores,
  suspended_keys,
  versions,
}: Status) => {
  const broken = Object.entries(stores).filter(([, isWell]) => !isWell)
  return {
    version: versions.tenure,
    stores: broken.length === 0 ? "all answer" : `no answer: ${broken.map(([name]) => name)}`,
    waiting_deliveries: backlog?.waiting,
    oldest_due_for: ageOf(backlog),
    given_up: failed_deliveries,
    disabled_webhooks,
    suspended_keys,
  }
}

/** The command. */
export const status = Command.make("status", {}, () =>
  Output.callAndRecord((client, options) => client.status.get({}, options), rowOf),
).pipe(
  Command.withDescription("Shows how a server and its stores are doing"),
  Command.withExamples([{ command: "tenure status --json" }]),
  connected,
)
