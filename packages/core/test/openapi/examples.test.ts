/** The request examples work unchanged, on a server with the resources in them. */

import { type Tenure, createTenure } from "@tenure/core"
import type { PathParameter } from "@tenure/core/internal"
import { openApi } from "@tenure/core/openapi"
import { WebhookTransport } from "@tenure/core/transport"
import { memory } from "@tenure/memory"
import { serve } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import { expect, it } from "vitest"

const document = openApi()

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
)

type Given = (typeof operations)[number]

type Ids = Partial<Record<PathParameter, string>>

/** Fills in a path's ids: the given ones, and examples for others. */
const pathOf = ({ parameters, path }: Given, ids: Ids): string => {
  const examples = parameters.flatMap(({ example, in: place, name }) =>
    place === "path" ? [[name, String(example)]] : [],
  )
  const values = { ...Object.fromEntries(examples), ...ids }
  return path.replaceAll(/{(\w+)}/g, (_, name: string) => values[name])
}

/** Makes the request in an operation's examples. */
const requestOf = (operation: Given, ids: Ids, token: string) => {
  const headers = operation.parameters.flatMap(({ example, in: place, name }) =>
    place === "header" ? [[name, String(example)]] : [],
  )
  const authorization = `Bearer ${token}`
  const path = pathOf(operation, ids)
  const method = operation.method.toUpperCase()
  const [content] = Object.entries(operation.requestBody?.content ?? {})
  if (content === undefined) {
    return { path, method, headers: { ...Object.fromEntries(headers), authorization } }
  }
  const [type, { example }] = content
  return {
    path,
    method,
    headers: { ...Object.fromEntries(headers), authorization, "content-type": type },
    body: typeof example === "string" ? example : JSON.stringify(example),
  }
}

/** Returns the example for an operation's success. */
const exampleOf = ({ responses }: Given): unknown => {
  const success = responses["200"]
  if (success === undefined || "$ref" in success) return undefined
  return Object.values(success.content ?? {})[0]?.example
}

const transport = Layer.succeed(WebhookTransport, {
  sendsHttpToNames: true,
  send: () => Effect.succeed({ status: 204, retryAfter: undefined, body: "" }),
})

/** Creates the resources in the examples. Returns the server's ids, and a token. */
const seed = async ({ apiKeys, events, memberships, webhooks }: Tenure) => {
  const projectId = "demo"
  await memberships.createProject(projectId)
  await memberships.grant({ projectId, userId: "1001", endDate: "2098-01-01T00:00:00.000Z" })
  const webhook = await webhooks.create({ projectId, url: "https://receiver.example/" })
  await memberships.extendAll({ projectId, endDate: "2098-01-01T00:00:00.000Z" })
  const [bulk] = await memberships.bulkExtensions({ projectId })
  const event_id = await events.publish({ projectId, type: "payment.completed", data: {} })
  const key = await apiKeys.issue({ projects: [projectId] })
  const { token } = await apiKeys.issue({ projects: "all", role: "admin" })
  const ids: Ids = {
    webhook_id: webhook.id,
    event_id,
    key_id: key.id,
    bulk_extension_id: bulk?.id ?? "",
  }
  return { ids, token }
}

/** Runs a test on its own server. */
const onServer = async (
  use: (url: string, seeded: Awaited<ReturnType<typeof seed>>, tenure: Tenure) => unknown,
) => {
  const tenure = await createTenure({ stores: memory(), transport })
  const server = await serve(tenure)
  await use(server.url, await seed(tenure), tenure)
  await server.close()
  await tenure.close()
}

it.each(operations)("of $operationId", (operation) =>
  onServer(async (url, { ids, token }, { memberships }) => {
    const { path, ...request } = requestOf(operation, ids, token)
    if (operation.operationId === "memberships.resume") {
      await memberships.pause({ projectId: "demo", userId: "1001" })
    }
    const response = await fetch(url + path, request)
    const text = await response.text()
    expect([response.status, text]).toEqual([200, text])
    const documented = exampleOf(operation)
    if (!Predicate.isObject(documented)) return
    const { code, message, method, ok } = JSON.parse(text)
    expect(documented).toMatchObject({ code, message, method, ok })
  }),
)
