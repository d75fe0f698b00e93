/** Causes the errors common to all operations, for every operation. */

import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import type { ApiRequest, ArrivedBody } from "@tenure/core/adapter"
import { type Operation, routes } from "@tenure/core/internal"
import { memory } from "@tenure/memory"
import * as Struct from "effect/Struct"
import { checked } from "./checked.ts"

const operations = Struct.keys(routes)

const empty: ArrivedBody = { _tag: "Bytes", bytes: new Uint8Array(0) }

const unreadable: ReadonlyArray<ArrivedBody> = [
  { _tag: "Unreadable", error: { _tag: "MalformedRequest", message: "The request is invalid." } },
  { _tag: "Unreadable", error: { _tag: "RequestTimeout" } },
  { _tag: "Unreadable", error: { _tag: "RequestHeadersTooLarge" } },
]

const requestFor = (
  operation: Operation,
  { headers = {}, ...more }: Partial<ApiRequest>,
): ApiRequest => ({
  method: routes[operation].method,
  path: routes[operation].pattern.replaceAll(/:\w+/g, "1001"),
  headers,
  body: empty,
  remoteAddress: "127.0.0.1",
  ...more,
})

/** Sends a request for every operation. If a project is given, each finds it. */
type Send = (more: Partial<ApiRequest>, project?: string) => Promise<void>

/** Sends requests for every operation to a new instance. */
const sending = async (
  options: TenureOptions,
  use: (send: Send, tenure: Tenure) => Promise<void>,
): Promise<void> => {
  const tenure = await createTenure({ ...options, stores: memory() })
  const { handle } = checked(tenure)
  await use(async (more, project) => {
    for (const operation of operations) {
      // One operation deletes it.
      if (project !== undefined) await tenure.memberships.createProject(project)
      await handle(requestFor(operation, more))
    }
  }, tenure)
  await tenure.close()
}

const generous: TenureOptions["rateLimits"] = {
  perKey: { limit: 1_000_000, window: "1 minute" },
  perAddress: { limit: 1_000_000, window: "1 minute" },
  burst: { limit: 1_000_000, window: "1 second" },
}

/** Causes them. */
export const causeErrors = async (): Promise<void> => {
  await sending({ rateLimits: generous }, async (send, tenure) => {
    const bearer = async (role: "admin" | "client") => {
      const { token } = await tenure.apiKeys.issue({ projects: "all", role })
      return { authorization: `Bearer ${token}` }
    }
    const headers = await bearer("admin")
    for (const body of unreadable) await send({ body })
    await send({})
    await send({ headers: await bearer("client") })
    await send({ headers, method: "TRACE" })
    await send({ headers, body: { _tag: "TooLarge" } }, "1001")
    const bytes = new TextEncoder().encode("a=b")
    const form = { ...headers, "content-type": "application/x-www-form-urlencoded" }
    await send({ headers: form, body: { _tag: "Bytes", bytes } }, "1001")
    await tenure.memberships.createProject("1001")
    await send({ headers, query: "limit=0" })
    const idempotency = { ...headers, "idempotency-key": "one" }
    const url = "https://receiver.example/"
    await send({ headers: idempotency, body: { _tag: "Parsed", value: { url } } })
    await send({ headers: idempotency, body: { _tag: "Parsed", value: { url } } })
    await tenure.close()
    await send({ headers })
  })
  const authenticate = () => {
    throw new Error("the host's own")
  }
  await sending({ rateLimits: generous, authenticate, onError: () => {} }, (send) => send({}))
  await sending({ rateLimits: { perAddress: { limit: 1, window: "1 hour" } } }, async (send) => {
    await send({})
    await send({})
  })
}
