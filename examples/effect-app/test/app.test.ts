import { createServer } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { ApiKeys, Memberships } from "@tenure/core/effect"
import * as Effect from "effect/Effect"
import { HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest"
import { makeApp } from "../src/app.ts"
import { projectId } from "../src/courses.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const database = "effect_app"
const end = Date.parse("2030-01-01T00:00:00.000Z")

/** Returns a client for a database on the test server. */
const clientOf = (name?: string) => {
  const url = new URL(inject("databaseUrl"))
  if (name !== undefined) url.pathname = `/${name}`
  return PgClient.layer({ url: Redacted.make(url.href) })
}

/** Creates an empty database. */
const freshDatabase = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql.unsafe(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)
  yield* sql.unsafe(`CREATE DATABASE ${database}`)
}).pipe(Effect.provide(clientOf()))

const runtime = ManagedRuntime.make(
  makeApp(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })).pipe(
    Layer.provideMerge(clientOf(database)),
    // Turns the log off.
    Layer.provide(Logger.layer([])),
  ),
)

let url: string
let token: string

beforeAll(async () => {
  await Effect.runPromise(freshDatabase)
  const { address } = await runtime.runPromise(HttpServer.HttpServer)
  if (address._tag === "UnixPathAddress") throw new TypeError("the server has no TCP address")
  url = `http://127.0.0.1:${address.port}`
  const { issue } = await runtime.runPromise(ApiKeys)
  token = (await runtime.runPromise(issue({ projects: [projectId] }))).token
})

afterAll(() => runtime.dispose())

const call = async (method: string, path: string, body?: object) => {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) }
}

describe("the API in the application's router", () => {
  const project = `/members/v2/projects/${projectId}`
  const webhooks = `${project}/integrations/webhooks`
  const extend = "2031-01-01T00:00:00.000Z"

  it("answers all five endpoints", async () => {
    const user = await grant()
    const one = await call("PATCH", `${project}/memberships/${user}/extend`, { extend })
    expect(one).toMatchObject({ status: 200, body: { total: 1 } })
    const all = await call("PATCH", `${project}/memberships/extend`, { extend })
    expect(all.status).toBe(200)
    const { body } = await call("POST", webhooks, { url: "https://receiver.example/" })
    expect(await call("GET", webhooks)).toMatchObject({ status: 200, body: { total: 1 } })
    expect((await call("DELETE", `${webhooks}/${body.data.id}`)).status).toBe(200)
  })

  it("leaves the other routes to the application", async () => {
    expect(await call("GET", "/courses")).toMatchObject({
      status: 200,
      body: [{ id: "chess" }, { id: "go" }],
    })
    expect((await call("GET", "/members/elsewhere")).status).toBe(404)
  })
})

let users = 2000

/** Creates a membership until 2030, and returns its user id. */
const grant = async (): Promise<string> => {
  const userId = String(users++)
  const memberships = await runtime.runPromise(Memberships)
  await runtime.runPromise(memberships.grant({ projectId, userId, endDate: end }))
  return userId
}

/** Returns whether a user has a place in a course, and the membership's end date and audit trail. */
const stateOf = (courseId: string, userId: string) =>
  runtime.runPromise(
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const { find, history } = yield* Memberships
      const places = yield* sql`
        SELECT user_id FROM places WHERE course_id = ${courseId} AND user_id = ${userId}`
      const membership = yield* Effect.option(find({ projectId, userId }))
      const rows = yield* history({ projectId, userId })
      return {
        places: places.length,
        endDate: membership._tag === "Some" ? membership.value.endDate : undefined,
        actions: rows.map(({ action }) => action),
      }
    }),
  )

describe("a booking", () => {
  const book = (courseId: string, userId: string) =>
    call("POST", `/courses/${courseId}/places`, { user_id: userId })

  it("takes one place, and extends the membership", async () => {
    const user = await grant()
    expect((await book("chess", user)).status).toBe(204)
    expect((await book("chess", user)).status).toBe(409)
    expect(await stateOf("chess", user)).toEqual({
      places: 1,
      endDate: Date.parse("2099-07-01T00:00:00.000Z"),
      actions: ["extended", "granted"],
    })
  })

  it("extends no membership if there is no place left", async () => {
    const [first, second] = [await grant(), await grant()]
    expect((await book("go", first)).status).toBe(204)
    expect((await book("go", second)).status).toBe(409)
    expect(await stateOf("go", second)).toEqual({ places: 0, endDate: end, actions: ["granted"] })
  })

  it("is refused without a membership, a course or a valid user id, and takes no place", async () => {
    expect((await book("chess", "404")).status).toBe(404)
    expect(await stateOf("chess", "404")).toMatchObject({ places: 0, endDate: undefined })
    expect((await book("none", "2000")).status).toBe(404)
    expect((await book("chess", "no body")).status).toBe(422)
    expect((await call("POST", "/courses/chess/places", {})).status).toBe(422)
  })
})
