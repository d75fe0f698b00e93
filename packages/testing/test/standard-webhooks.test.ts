/** Notifications, verified by the public libraries for Standard Webhooks. */

import { PgClient } from "@effect/sql-pg"
import { createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { expect, inject, it } from "vitest"
import { type Notification, startReceiver } from "../src/support/fixtures.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const schema = "standard_webhooks"
const projectId = "p1"

/** Returns empty stores on the test database. */
const emptyPostgres = async () => {
  const url = inject("databaseUrl")
  await PgClient.PgClient.use((sql) => sql.unsafe(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Effect.runPromise,
  )
  return postgres({ url, schema })
}

const libraries = [StandardWebhook, SvixWebhook]

/** Returns, for each library, whether it accepts a notification. */
const verdicts = ({ body, headers }: Notification, secret: string): ReadonlyArray<boolean> => {
  const plain = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value ?? ""]),
  )
  return libraries.map((Library) => {
    try {
      new Library(secret).verify(body, plain)
      return true
    } catch {
      return false
    }
  })
}

const accepted = [true, true]
const refused = [false, false]

it.each([
  ["memory", async () => memory()],
  ["postgres", emptyPostgres],
] as const)(
  "with stores on %s, the libraries accept either secret during a rotation",
  async (_name, stores) => {
    const receiver = await startReceiver()
    const tenure = await createTenure({
      stores: await stores(),
      transport: nodeTransport,
      webhooks: { allowedNetworks: ["127.0.0.0/8"] },
    })
    const publish = () => tenure.events.publish({ projectId, type: "test.happened", data: {} })
    await tenure.memberships.createProject(projectId)
    const { id, secret } = await tenure.webhooks.create({ projectId, url: receiver.url })
    await publish()
    await receiver.until(1)
    const { secret: fresh } = await tenure.webhooks.rotateSecret({ projectId, webhookId: id })
    await publish()
    await receiver.until(2)
    expect(receiver.received.map((one) => verdicts(one, secret))).toEqual([accepted, accepted])
    expect(receiver.received.map((one) => verdicts(one, fresh))).toEqual([refused, accepted])
    await tenure.close()
    receiver.close()
  },
)
