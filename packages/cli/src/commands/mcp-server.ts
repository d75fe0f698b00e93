/** The MCP server for `tenure mcp`. Loaded only by this command, because the SDK is large and optional. */

import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import {
  type CallToolResult,
  CallToolRequestSchema,
  ListToolsRequestSchema,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js"
import type { CallOptions, Client } from "@tenure/client"
import { openApi } from "@tenure/core/openapi"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { type Failure, describeFailure, operationFailed } from "../support/failure.ts"
import { toJson } from "../support/text.ts"
import { type McpTool, credentialFields, decideMcpCall, makeMcpTools } from "./mcp-tools.ts"

/** The server's settings. */
export interface McpSettings {
  readonly client: Client
  /** Converts an error from a call. */
  readonly failureOf: (error: unknown) => Failure
  /** Whether tools may make changes. */
  readonly write: boolean
  /** The project for calls without one. */
  readonly project: string | undefined
  readonly version: string
}

const instructions = `Tenure keeps the end dates of memberships: who is a member of a project, and until when. It notifies webhooks of every change.
Dates are in UTC: YYYY-MM-DDTHH:mm:ss.sssZ, or Unix time in milliseconds. A last whole day is sent as through, such as 2027-01-31. Durations are ISO 8601, such as P1M.
Lists come in pages: pass "next" of an answer as "after" to go on.
Tools that make changes begin with a dry run, or ask for confirm: true. Give a reason where there is such a field: the audit trail keeps it.`

const readOnly = "\nThis server only reads. tenure mcp --write also makes changes."

const listed = (tool: McpTool, project: string | undefined): Tool => ({
  name: tool.name,
  title: tool.title,
  description: tool.description,
  inputSchema: {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(tool.fields).filter((field): field is [string, object] =>
        Predicate.isObject(field[1]),
      ),
    ),
    required: tool.required.filter((name) => name !== "project_id" || project === undefined),
    additionalProperties: false,
  },
  annotations: {
    readOnlyHint: tool.safeguard === "none",
    destructiveHint: tool.safeguard !== "none",
    idempotentHint: tool.isIdempotent,
    openWorldHint: false,
  },
})

/** Calls the client's method for an operation. */
const callOperation = async (
  client: Client,
  operation: string,
  input: object,
  options: CallOptions,
): Promise<unknown> => {
  const [resource = "", method = ""] = operation.split(".")
  const group: unknown = Predicate.hasProperty(client, resource) ? client[resource] : undefined
  const call: unknown = Predicate.hasProperty(group, method) ? group[method] : undefined
  if (typeof call !== "function") throw new TypeError(`The client has no ${operation}`)
  return call(input, options)
}

const withoutCredentials = (data: unknown): unknown =>
  Predicate.isObject(data) && !Array.isArray(data)
    ? Object.fromEntries(Object.entries(data).filter(([name]) => !credentialFields.has(name)))
    : data

// The same in every success.
const envelope: ReadonlySet<string> = new Set(["ok", "method", "path", "code"])

const answerOf = (response: unknown): object => {
  const fields = Predicate.isObject(response) ? Object.entries(response) : []
  return Object.fromEntries(
    fields
      .filter(([name]) => !envelope.has(name))
      .map(([name, value]) => [name, name === "data" ? withoutCredentials(value) : value]),
  )
}

/** The longest answer, in characters: about 50,000 tokens. */
const maxAnswerLength = 200_000

const textResult = (...texts: ReadonlyArray<string>): CallToolResult => ({
  content: texts.map((text) => ({ type: "text", text })),
})

const errorResult = (message: string): CallToolResult => ({
  ...textResult(message),
  isError: true,
})

const afterDryRun =
  "This was a dry run: nothing was changed. To make the change, call again with dry_run: false."

const tooLong = (length: number): string =>
  `The answer has ${length} characters, more than ${maxAnswerLength}. Ask for less, for example with a smaller limit.`

/** Answers a call. A change is answered however long its answer is. */
const answer = async (
  tool: McpTool,
  given: Readonly<Record<string, unknown>>,
  { client, failureOf, project }: McpSettings,
  signal: AbortSignal,
): Promise<CallToolResult> => {
  const decided = decideMcpCall(tool, given, project)
  if (decided._tag === "Refused") return errorResult(decided.message)
  const { idempotencyKey, input, isDryRun } = decided
  try {
    const options = { idempotencyKey, signal }
    const text = toJson(answerOf(await callOperation(client, tool.operation, input, options)))
    if (tool.safeguard === "none" && text.length > maxAnswerLength)
      return errorResult(tooLong(text.length))
    return isDryRun ? textResult(text, afterDryRun) : textResult(text)
  } catch (error) {
    return errorResult(describeFailure(failureOf(error)))
  }
}

/** Makes the server. It answers once connected to a transport. */
export const makeMcpServer = (settings: McpSettings): Server => {
  const { project, version, write } = settings
  const offered = makeMcpTools(openApi()).filter(({ safeguard }) => write || safeguard === "none")
  const byName = new Map(offered.map((tool) => [tool.name, tool]))
  const server = new Server(
    { name: "tenure", title: "Tenure", version },
    { capabilities: { tools: {} }, instructions: instructions + (write ? "" : readOnly) },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: offered.map((tool) => listed(tool, project)),
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
    const tool = byName.get(params.name)
    return tool === undefined
      ? errorResult(`There is no tool ${params.name}.${write ? "" : readOnly}`)
      : answer(tool, params.arguments ?? {}, settings, signal)
  })
  return server
}

/** Waits for the standard input's end, because agents end servers by closing it. */
const inputEnded = Effect.callback<void>((resume) => {
  const end = () => resume(Effect.void)
  process.stdin.once("end", end).once("close", end)
  return Effect.sync(() => process.stdin.off("end", end).off("close", end))
})

/** Waits until the transport closes by itself, and fails: it then reads no more, not even the input's end. */
const transportClosed = (server: Server): Effect.Effect<never, Failure> =>
  Effect.callback((resume) => {
    const onclose = () =>
      resume(Effect.fail(operationFailed("The agent sent a message of more than 10 MiB.")))
    Object.assign(server, { onclose })
  })

/** Serves an agent on the standard input and output until it closes them. */
export const serveMcp = (settings: McpSettings): Effect.Effect<void, Failure> =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const server = makeMcpServer(settings)
      await server.connect(new StdioServerTransport())
      return server
    }),
    (server) => Effect.raceFirst(inputEnded, transportClosed(server)),
    (server) => Effect.promise(() => server.close()),
  )
