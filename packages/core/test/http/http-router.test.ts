import { memory } from "@tenure/memory"
import { adapterSuite } from "@tenure/testing/conformance"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import * as Layer from "effect/Layer"
import { expect, it } from "vitest"
import { tenureRouterLayer } from "../../src/http/http-router.ts"
import type { Identity } from "../../src/keys/identity.ts"
import { tenureLayer } from "../../src/tenure.ts"
import { own, routerHarness } from "../support/router.ts"

adapterSuite("Effect's NodeHttpServer", {
  ...routerHarness,
  // `contract.test.ts` tests them on the same handler, and the system suite on this router.
  testsOperations: false,
})

it("a guard of the host covers the API like the host's own routes, also if it is ready later", async () => {
  const added = Effect.runSync(Deferred.make<void>())
  const api = Layer.tap(tenureRouterLayer(), () => Deferred.succeed(added, undefined))
  const guard = HttpRouter.middleware(
    Effect.gen(function* () {
      yield* Deferred.await(added)
      const refusal = Effect.succeed(HttpServerResponse.empty({ status: 403 }))
      return (routes) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
          headers["x-vpn"] === "1" ? routes : refusal,
        )
    }),
    { global: true },
  )
  const services = Layer.provide(tenureLayer(), memory())
  for (const routes of [Layer.mergeAll(guard, api, own), Layer.mergeAll(api, own, guard)]) {
    const app = Layer.provide(routes, services)
    const { dispose, handler } = HttpRouter.toWebHandler(app, { disableLogger: true })
    for (const path of ["/own", "/v2/projects/p1/integrations/webhooks"]) {
      expect((await handler(new Request(`http://localhost${path}`))).status).toBe(403)
    }
    await dispose()
  }
})

it.each<readonly [string, Effect.Effect<Identity | undefined>]>([
  ["dies", Effect.die(new Error("no database"))],
  ["is interrupted", Effect.interrupt],
])(
  "an authentication that %s is a fault of the host: the response is 500, and onError is called",
  async (_name, effect) => {
    const faults: Array<unknown> = []
    const services = tenureLayer({ onError: (fault) => void faults.push(fault) })
    const app = tenureRouterLayer({ authenticate: () => effect }).pipe(
      Layer.provide(services),
      Layer.provide(memory()),
    )
    const { dispose, handler } = HttpRouter.toWebHandler(app, { disableLogger: true })
    const url = "http://localhost/v2/projects/p1/integrations/webhooks"
    const response = await handler(new Request(url))
    expect(JSON.parse(await response.text())).toMatchObject({ ok: false, code: 500 })
    expect(faults).toHaveLength(1)
    await dispose()
  },
)

it("the host's own authentication may use the services of the host", async () => {
  class Sessions extends Context.Service<
    Sessions,
    { readonly find: (cookie: string) => Effect.Effect<Identity | undefined> }
  >()("Sessions") {}
  const sessions = Layer.succeed(Sessions, {
    find: (cookie) =>
      Effect.succeed(cookie === "1" ? { keyId: "alice", projects: ["p1"] } : undefined),
  })
  const routes = tenureRouterLayer({
    authenticate: ({ cookies }) =>
      Effect.flatMap(Sessions, ({ find }) => find(cookies["session"] ?? "")),
  })
  const services = Layer.provide(tenureLayer(), memory())
  const app = Layer.provide(routes, Layer.merge(services, sessions))
  const { dispose, handler } = HttpRouter.toWebHandler(app, { disableLogger: true })
  const list = async (cookie: string) => {
    const url = "http://localhost/v2/projects/p1/integrations/webhooks"
    return (await handler(new Request(url, { headers: { cookie } }))).status
  }
  // The session opens the project, but the project does not exist.
  expect([await list("session=1"), await list("session=2")]).toEqual([404, 401])
  await dispose()
})

it("an unknown option is refused by name", async () => {
  const routes = tenureRouterLayer(JSON.parse('{ "authentication": true }'))
  const app = Layer.provide(routes, Layer.provide(tenureLayer(), memory()))
  const { dispose, handler } = HttpRouter.toWebHandler(app, { disableLogger: true })
  await expect(handler(new Request("http://localhost/"))).rejects.toMatchObject({
    _tag: "InvalidInput",
    field: "authentication",
  })
  await dispose()
})
