/** `tenure dev`: runs a store, the API, the console and a webhook receiver in this process. */

import type { IncomingMessage, ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { type Client, type WebhookEvent, createClient, verifyWebhook } from "@tenure/client"
import { tenureConsole } from "@tenure/console"
import { type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { type ServerOptions, nodeTransport, serve, toNodeHandler } from "@tenure/node-http"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import { attempt, operationFailed } from "../support/failure.ts"
import { explainStartFailure } from "../support/in-process.ts"
import { type Profile, readProfiles, removeProfile, replace } from "../support/target.ts"
import { printable } from "../support/text.ts"
import { lineOfEvent } from "./listen.ts"
import { listenOnLoopback } from "./trigger.ts"

/** The path identifying receivers from earlier runs. */
const receiverPath = "/tenure-dev"

/** A receiver on the loopback interface. It prints verified webhooks. */
export interface Receiver {
  readonly url: string
  /** From now on, notifications are verified with the secret. */
  readonly trust: (secret: string) => void
}

/** Starts a receiver, until the scope closes. */
export const startReceiver = Effect.fnUntraced(function* (
  onEvent: (event: WebhookEvent) => void,
  onRefused: (reason: string) => void,
) {
  const secrets: Array<string> = []
  const receive = async (request: IncomingMessage): Promise<number> => {
    try {
      const { headers } = request
      onEvent(await verifyWebhook({ headers, body: await text(request) }, secrets))
      return 204
    } catch (error) {
      onRefused(error instanceof Error ? error.message : String(error))
      return 400
    }
  }
  return {
    url: `${yield* listenOnLoopback(receive)}${receiverPath}`,
    trust: (secret) => void secrets.push(secret),
  } satisfies Receiver
})

/** The flags. */
export interface DevFlags {
  /** The folder for all data; without it, the data is lost at the end. */
  readonly folder: Option.Option<string>
  readonly port: number
}

const project_id = "demo"

const users = ["1001", "1002", "1003"]

const openStores = Effect.fnUntraced(function* (folder: Option.Option<string>) {
  if (Option.isNone(folder)) return memory()
  const { embedded } = yield* Effect.promise(() => import("@tenure/embedded"))
  return embedded({ path: folder.value })
})

const openTenure = Effect.fnUntraced(function* (folder: Option.Option<string>) {
  const stores = yield* openStores(folder)
  return yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        createTenure({
          stores,
          transport: nodeTransport,
          expiry: {},
          webhooks: { allowedNetworks: ["127.0.0.0/8"] },
        }),
      catch: explainStartFailure,
    }),
    ({ close }) => Effect.promise(close),
  )
})

/** Explains why a server cannot listen. */
const listening = (fault: unknown) =>
  operationFailed(
    Predicate.hasProperty(fault, "code") && fault.code === "EADDRINUSE"
      ? "Another program uses the port. Give another one: --port 3001, or PORT."
      : String(fault),
  )

interface ServerSettings extends Pick<ServerOptions, "port" | "idleTimeout"> {
  /** Answers requests for pages, and passes on the others. */
  readonly pages: (request: IncomingMessage, response: ServerResponse, next: () => void) => void
}

/** Starts a server with pages and the API, until the scope closes. */
export const openServer = (tenure: Tenure, { pages, ...settings }: ServerSettings) => {
  const api = toNodeHandler(tenure)
  return Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        serve(tenure, {
          ...settings,
          shutdownTimeout: "1 second",
          listener: (request, response) => pages(request, response, () => api(request, response)),
        }),
      catch: listening,
    }),
    ({ close }) => Effect.promise(close),
  )
}

/** Issues a key, revoked at the end. */
export const openKey = ({
  apiKeys,
}: Tenure): Effect.Effect<{ readonly token: string }, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => apiKeys.issue({ projects: "all", role: "admin", name: "tenure dev" })),
    ({ id }) => Effect.promise(() => apiKeys.revoke(id)),
  )

// A name unlikely for a user's own profile.
const profile = "tenure-dev"

/** Tells whether a profile belongs to a running command: a killed one leaves its profile behind. */
const isRunning = (found: Profile | undefined) =>
  found === undefined || !("url" in found)
    ? Effect.succeed(false)
    : attempt(() => {
        const { token, url: baseUrl } = found
        return createClient({ baseUrl, token, maxRetries: 0, timeout: 1000 }).identity.get({})
      }).pipe(
        Effect.as(true),
        Effect.catchTag("Failure", ({ code }) => Effect.succeed(code === "TIMEOUT")),
      )

/** Adds the profile under the first name not in use by a running command, and returns the name. */
const addProfile = Effect.fnUntraced(function* (own: Profile) {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? profile : `${profile}-${number}`
    const found = (yield* readProfiles)[name]
    if (yield* isRunning(found)) continue
    if (yield* replace(name, found, own)) return name
  }
})

/**
 * Keeps the connection in a profile while the command runs, so commands in other terminals find it.
 * Returns the profile's name.
 */
export const openProfile = (url: string, token: string) =>
  Effect.acquireRelease(addProfile({ url, token }), (name) =>
    Effect.ignore(removeProfile(name, (one) => "token" in one && one.token === token)),
  ).pipe(
    // The API and the console can be used nevertheless.
    Effect.catchTag("Failure", ({ message }) =>
      Effect.as(Console.error(printable(message)), profile),
    ),
  )

/** Creates a project with members, unless it is there. */
const seed = Effect.fnUntraced(function* ({ memberships, projects }: Client) {
  yield* attempt(() => projects.create({ project_id }))
  const { total } = yield* attempt(() => memberships.list({ project_id, limit: 1 }))
  if (total > 0) return
  const inAMonth = (yield* Clock.currentTimeMillis) + 30 * 86_400_000
  const end_date = new Date(inAMonth).toISOString()
  const lines = users.map((user_id) => ({ user_id, end_date }))
  yield* attempt(() => memberships.import({ project_id, lines }))
})

/** Registers the receiver as a webhook. Deletes webhooks left behind by killed runs. */
const subscribe = Effect.fnUntraced(function* ({ webhooks }: Client, { trust, url }: Receiver) {
  const { data: earlier } = yield* attempt(() => webhooks.list({ project_id }))
  for (const webhook of earlier.filter((one) => one.url.endsWith(receiverPath)))
    yield* attempt(() => webhooks.delete({ project_id, webhook_id: webhook.id }))
  const { data } = yield* attempt(() => webhooks.create({ project_id, url }))
  trust(data.secret)
})

/** Returns the command to print: in a repository clone, the npm script. */
export const invocation = Config.String("npm_lifecycle_event").pipe(
  Effect.option,
  Effect.map(Option.contains("tenure")),
  Effect.map((isScript) => (isScript ? "npm run --silent tenure --" : "npx tenure")),
)

interface Shown {
  readonly url: string
  readonly token: string
  /** The profile's name. */
  readonly name: string
  readonly command: string
}

const helpOf = ({ command, name, token, url }: Shown): string =>
  [
    `The API      ${url}    ${url}/v2/docs shows it`,
    `The console  ${url}/console/    sign in with the token`,
    `The token    ${token}    until this ends`,
    "",
    "In another terminal, in this folder:",
    "",
    `${command} members list --project ${project_id} --profile ${name}`,
    `${command} members extend ${users[0]} 2099-01-01 --project ${project_id} --profile ${name}`,
    `curl -X PATCH ${url}/v2/projects/${project_id}/memberships/${users[0]}/extend -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '{"extend":"2099-01-01T00:00:00.000Z"}'`,
    "",
    "Webhooks that have arrived here, and are genuine:",
  ].join("\n")

/** Runs until it is interrupted. */
export const runDevServer = Effect.fnUntraced(function* ({ folder, port }: DevFlags) {
  const context = yield* Effect.context<never>()
  const print = (line: string) => Effect.runForkWith(context)(Console.log(line))
  const receiver = yield* startReceiver(
    (event) => print(lineOfEvent(event)),
    (reason) => print(printable(`refused: ${reason}`)),
  )
  const tenure = yield* openTenure(folder)
  const { token } = yield* openKey(tenure)
  const pages = toNodeHandler(tenureConsole(tenure, { authorize: "api-key" }))
  const { url } = yield* openServer(tenure, { port, pages })
  const client = createClient({ baseUrl: url, token })
  yield* seed(client)
  yield* subscribe(client, receiver)
  const name = yield* openProfile(url, token)
  yield* Console.log(helpOf({ url, token, name, command: yield* invocation }))
  return yield* Effect.never
}, Effect.scoped)
