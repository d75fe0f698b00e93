/** `tenure mcp`: the API's operations as tools for agents. */

import { version } from "@tenure/core/internal"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import { Api } from "../support/api.ts"
import { type Failure, operationFailed, usageFailure } from "../support/failure.ts"
import { booleanFlag, projectFlag } from "../support/flags.ts"
import { connected } from "../support/output.ts"

const writeFlag = booleanFlag(
  "write",
  "Also offers tools that make changes: with a dry run first, or a confirmation",
)

const explain = (cause: unknown): Failure =>
  Predicate.hasProperty(cause, "code") && cause.code === "ERR_MODULE_NOT_FOUND"
    ? usageFailure(
        "@modelcontextprotocol/sdk is not installed here. Install it beside tenure: npm install @modelcontextprotocol/sdk. Or run both: npx -p tenure -p @modelcontextprotocol/sdk tenure mcp",
      )
    : operationFailed(String(cause))

/** The command. */
export const mcpCommand = Command.make(
  "mcp",
  { write: writeFlag, project: Flag.optional(projectFlag) },
  Effect.fnUntraced(function* ({ project, write }) {
    const { serveMcp } = yield* Effect.tryPromise({
      try: () => import("./mcp-server.ts"),
      catch: explain,
    })
    const { client, failureOf } = yield* Api
    yield* serveMcp({ client, failureOf, write, project: Option.getOrUndefined(project), version })
  }),
).pipe(
  Command.withDescription(
    "Serves the API to agents as tools, over MCP on standard input and output",
  ),
  Command.withExamples([
    { command: "tenure mcp --profile staging", description: "Tools that read" },
    { command: "tenure mcp --project shop --write", description: "Also tools that make changes" },
  ]),
  connected,
)
