import { once } from "node:events"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { gzipSync } from "node:zlib"
import { type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { attachRealtime } from "@tenure/node-http"
import { adapterSuite, send } from "@tenure/testing/conformance"
import express5 from "express"
import type { Express } from "express"
import { describe, expect, it, onTestFinished } from "vitest"
import { membershipErrors, membershipMiddleware } from "../src/index.ts"
import { hostOf, start, versions } from "./host.ts"

// The versions share the adapter.
adapterSuite("Express 5", { ...hostOf(express5), testsOperations: false })

const extend = "2099-01-01T00:00:00.000Z"
const path = "/v2/projects/p1/memberships/1001/extend"

/** An extension, or another request's parts. */
interface Sent {
  readonly body?: string | Uint8Array
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Starts a backend with one member for a test. */
const startBackend = async (
  express: typeof express5,
  use: (app: Express, tenure: Tenure) => void,
) => {
  // No token comes back during a test.
  const rateLimits = { perAddress: { limit: 300, window: "1 day" } } as const
  const { close, tenure, url } = await start({ rateLimits }, (mounted) => {
    const app = express()
    use(app, mounted)
    return app
  })
  onTestFinished(close)
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: extend })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const authorization = `Bearer ${token}`
  const call = (
    to = path,
    { body = JSON.stringify({ extend }), headers, type = "application/json" }: Sent = {},
  ) =>
    send(url, {
      method: "PATCH",
      path: to,
      headers: { authorization, "content-type": type, ...headers },
      body,
    })
  return { call, url }
}

const asTeapot = (message: (error: { readonly type?: unknown }) => string) =>
  ((error, _request, response, _next) => {
    response.status(418).send(message(error))
  }) satisfies express5.ErrorRequestHandler

describe.each(versions)("%s in a backend", (_name, express) => {
  const json = express.json()

  it.each([
    ["express.json()", json],
    ["express.raw()", express.raw({ type: "*/*" })],
    ["express.text()", express.text({ type: "*/*" })],
    ["express.urlencoded()", express.urlencoded({ extended: false })],
  ] as const)("reads bodies after %s", async (_parser, parser) => {
    const { call } = await startBackend(express, (app, tenure) => {
      app.use(parser, membershipMiddleware(tenure))
    })
    expect((await call()).status).toBe(200)
    expect((await call(path, { body: "{}" })).status).toBe(422)
    const type = "application/x-www-form-urlencoded"
    expect((await call(path, { body: `extend=${extend}`, type })).status).toBe(415)
  })

  it("is the same behind parsers as before them, whatever they refuse", async () => {
    const unreadableByParsers = {
      body: JSON.stringify({ extend }),
      type: "application/json; charset=utf-16",
    }
    const encoded = (encoding: string, body: string | Uint8Array = "not compressed") => ({
      body,
      headers: { "content-encoding": encoding },
    })
    const requests: ReadonlyArray<Sent> = [
      unreadableByParsers,
      { type: "application/json; charset=iso-8859-1" },
      encoded("gzip", gzipSync(JSON.stringify({ extend }))),
      encoded("gzip"),
      encoded("br"),
      encoded("x-unknown"),
      { body: `{"extend":"${"x".repeat(70_000)}"}` },
      { body: `{"extend":"${"x".repeat(200_000)}"}` },
      { body: "a=1&".repeat(2000), type: "application/x-www-form-urlencoded" },
      { body: "text", type: "text/plain; charset=unknown" },
    ]
    const answers = async (...parsers: ReadonlyArray<express5.RequestHandler>) => {
      const { call } = await startBackend(express, (app, tenure) => {
        app.use(...parsers, membershipMiddleware(tenure), membershipErrors(tenure))
      })
      const found: Array<unknown> = []
      for (const request of requests) {
        const { body, status } = await call(path, request)
        found.push([status, { ...Object(body), request_id: undefined }])
      }
      return found
    }
    const [unparsed, ...before] = await answers()
    const parsers = [json, express.urlencoded({ extended: false }), express.text()]
    const [unreadable, ...behind] = await answers(...parsers)
    // A charset is no reason for Tenure to refuse JSON, but the parser cannot read this one.
    expect(unparsed).toMatchObject([200, {}])
    expect(unreadable).toMatchObject([400, { error: { error_code: "MALFORMED_REQUEST" } }])
    expect(behind).toEqual(before)
  })

  it("leaves to the backend what its parsers refuse elsewhere, and what others refuse", async () => {
    const { call } = await startBackend(express, (app, tenure) => {
      const verify = (request: { readonly url?: string | undefined }) => {
        if (request.url === path) throw new Error("not signed")
      }
      app.use(express.json({ verify }), membershipMiddleware(tenure), membershipErrors(tenure))
      app.use(asTeapot(({ type }) => String(type)))
    })
    expect((await call()).text).toBe("entity.verify.failed")
    expect((await call("/other", { body: "{" })).text).toBe("entity.parse.failed")
  })

  it("lets no target with an invalid host pass a guard on its path", async () => {
    const { call } = await startBackend(express, (app, tenure) => {
      app.use("/v2", (_request, response) => void response.sendStatus(403))
      app.use(membershipMiddleware(tenure))
    })
    const hosts = ["http://x", "http://x;", "http://x'", "http://x%", "http://a@b@c;"]
    for (const host of [...hosts, "javascript://x", "foo://x;", "http://x:y:z", "http:/"]) {
      expect([403, 404]).toContain((await call(`${host}${path}`)).status)
    }
  })

  it("reads a body that other middleware reads as text at the same time", async () => {
    let arrive: () => void = () => {}
    const arrived = new Promise<void>((resolve) => (arrive = resolve))
    const { call, url } = await startBackend(express, (app, tenure) => {
      app.use((request, _response, next) => {
        request.setEncoding("utf8").on("data", () => arrive())
        next()
      })
      app.use(membershipMiddleware(tenure))
    })
    expect((await call()).status).toBe(200)
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    socket.write(`PATCH ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{"`)
    await arrived
    socket.end("a}")
    expect(await text(socket)).toContain("401")
  })

  it("answers paths that other middleware has rewritten", async () => {
    const { call } = await startBackend(express, (app, tenure) => {
      app.use((request, _response, next) => {
        request.url = request.url.replace(/^\/legacy/, "")
        next()
      })
      app.use(membershipMiddleware(tenure))
    })
    const legacy = `/legacy${path}`
    expect((await call(legacy)).body).toMatchObject({ code: 200, path: legacy })
  })

  it("passes errors in sending a response to the error handler of the backend", async () => {
    const { call } = await startBackend(express, (app, tenure) => {
      app.use((_request, response, next) => {
        const { writeHead } = response
        response.writeHead = () => {
          response.writeHead = writeHead
          throw new Error("a listener of the backend's")
        }
        next()
      })
      app.use(membershipMiddleware(tenure), asTeapot(String))
    })
    expect((await call()).status).toBe(418)
  })

  it("answers 400 if other middleware has read the body and discarded it", async () => {
    const { call } = await startBackend(express, (app, tenure) => {
      app.use((request, _response, next) => {
        request.resume().on("end", () => next())
      })
      app.use(membershipMiddleware(tenure))
    })
    const response = await call()
    expect(response.status).toBe(400)
    expect(response.text).toContain("read before")
  })

  it("authenticates by the sessions of the backend", async () => {
    const { call } = await startBackend(express, (app, tenure) => {
      app.use((request, response, next) => {
        response.locals["user"] = request.get("cookie") === "session=1" ? "alice" : undefined
        next()
      })
      const authenticate = async ({ res }: express5.Request) => {
        const user = res?.locals["user"]
        return user === undefined ? undefined : { keyId: user, projects: ["p1"] }
      }
      app.use(membershipMiddleware(tenure, { authenticate }))
    })
    expect((await call()).status).toBe(401)
    expect((await call(path, { headers: { cookie: "session=1" } })).status).toBe(200)
  })

  it("counts requests by req.ip if useExpressIp is true", async () => {
    const { url } = await startBackend(express, (app, tenure) => {
      app.set("trust proxy", true)
      app.use(membershipMiddleware(tenure, { useExpressIp: true }))
    })
    for (const [client, remaining] of [
      ["203.0.113.1", "299"],
      ["203.0.113.1", "298"],
      ["203.0.113.2", "299"],
      // Some proxies add the port.
      ["203.0.113.2:4711", "298"],
      // An invalid address counts as the socket's.
      ["one", "299"],
      ["two", "298"],
    ] as const) {
      const headers = { "x-forwarded-for": client }
      const response = await send(url, { method: "PATCH", path, headers })
      expect(response.headers["x-ratelimit-remaining"]).toBe(remaining)
    }
  })
})

it("the server of Express follows the feed by WebSocket, below the path of the mount", async () => {
  const tenure = await createTenure({ stores: memory() })
  onTestFinished(() => tenure.close())
  await tenure.memberships.createProject("p1")
  const app = express5().use("/members", membershipMiddleware(tenure))
  const server = app.listen(0, "127.0.0.1")
  onTestFinished(() => void server.close())
  await once(server, "listening")
  const realtime = attachRealtime(server, tenure, {
    mountPath: "/members",
    authenticate: ({ url }) =>
      url === "/members/v2/realtime?as=ann" ? { keyId: "ann", projects: ["p1"] } : undefined,
  })
  const address = server.address()
  const port = typeof address === "object" ? address?.port : undefined
  const socket = new WebSocket(`ws://127.0.0.1:${port}/members/v2/realtime?as=ann`, "tenure.v1")
  await once(socket, "open")
  socket.send(JSON.stringify({ type: "subscribe", project: "p1" }))
  const [{ data }] = await once(socket, "message")
  expect(JSON.parse(data)).toMatchObject({ type: "cursor" })
  realtime.close()
  const [{ code }] = await once(socket, "close")
  expect(code).toBe(1001)
})

it.each([
  ['{"useExpressIP":true}', "useExpressIP"],
  ['{"useExpressIp":"yes"}', "useExpressIp"],
  ['{"authenticate":true}', "authenticate"],
  ["null", "options"],
])("the options %s are refused by name", async (options, field) => {
  const tenure = await createTenure({ stores: memory() })
  onTestFinished(() => tenure.close())
  expect(() => membershipMiddleware(tenure, JSON.parse(options))).toThrow(
    expect.objectContaining({ _tag: "InvalidInput", field }),
  )
})

it("a missing await is a clear error", async () => {
  const tenure = createTenure({ stores: memory() })
  // @ts-expect-error: plain JavaScript does not notice.
  expect(() => membershipMiddleware(tenure)).toThrow(
    new TypeError("tenure is a promise: write `await createTenure(…)`"),
  )
  // @ts-expect-error: plain JavaScript does not notice.
  expect(() => membershipMiddleware()).toThrow(TypeError)
  await (await tenure).close()
})
