import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { gzipSync } from "node:zlib"
import type { Tenure } from "@tenure/core"
import { adapterSuite, send } from "@tenure/testing/conformance"
import express5 from "express"
import type { Express } from "express"
import { describe, expect, it } from "vitest"
import { membershipErrors, membershipMiddleware } from "../src/index.ts"
import { hostOf, start, versions } from "./host.ts"

// The versions share the adapter.
adapterSuite("Express 5", { ...hostOf(express5), testsOperations: false })

for (const [name, express] of versions) {
  const json = express.json()

  describe(`${name} in a backend`, () => {
    const extend = "2099-01-01T00:00:00.000Z"
    const path = "/v2/projects/p1/memberships/1001/extend"

    /** Runs a test with a new backend that has one member. */
    const inBackend = async (
      use: (app: Express, tenure: Tenure) => void,
      test: (
        call: (
          to: string,
          content?: string | Uint8Array,
          type?: string,
          headers?: Readonly<Record<string, string>>,
        ) => ReturnType<typeof send>,
        url: string,
      ) => Promise<void>,
    ): Promise<void> => {
      const server = await start({}, (tenure) => {
        const app = express()
        use(app, tenure)
        return app
      })
      const { apiKeys, memberships } = server.tenure
      await memberships.createProject("p1")
      await memberships.grant({ projectId: "p1", userId: "1001", endDate: extend })
      const { token } = await apiKeys.issue({ projects: ["p1"] })
      try {
        await test(
          (to, content = JSON.stringify({ extend }), type = "application/json", headers = {}) =>
            send(server.url, {
              method: "PATCH",
              path: to,
              headers: { authorization: `Bearer ${token}`, "content-type": type, ...headers },
              body: content,
            }),
          server.url,
        )
      } finally {
        await server.close()
      }
    }

    it.each([
      ["express.json()", express.json()],
      ["express.raw()", express.raw({ type: "*/*" })],
      ["express.text()", express.text({ type: "*/*" })],
      ["express.urlencoded()", express.urlencoded({ extended: false })],
    ] as const)("reads bodies after %s", (_name, parser) =>
      inBackend(
        (app, tenure) => {
          app.use(parser)
          app.use(membershipMiddleware(tenure))
        },
        async (call) => {
          expect((await call(path)).status).toBe(200)
          expect((await call(path, "{}")).status).toBe(422)
          const form = await call(path, `extend=${extend}`, "application/x-www-form-urlencoded")
          expect(form.status).toBe(415)
        },
      ),
    )

    it("is the same behind parsers as before them, whatever they refuse", () => {
      const requests: ReadonlyArray<
        readonly [type: string, content: string | Uint8Array, encoding?: string]
      > = [
        ["application/json; charset=iso-8859-1", JSON.stringify({ extend })],
        ["application/json; charset=utf-16", JSON.stringify({ extend })],
        ["application/json", gzipSync(JSON.stringify({ extend })), "gzip"],
        ["application/json", "not compressed", "gzip"],
        ["application/json", "not compressed", "br"],
        ["application/json", "compressed somehow", "x-unknown"],
        ["application/json", `{"extend":"${"x".repeat(70_000)}"}`],
        ["application/json", `{"extend":"${"x".repeat(200_000)}"}`],
        ["application/x-www-form-urlencoded", "a=1&".repeat(2000)],
        ["text/plain; charset=unknown", "text"],
      ]
      const answers = async (parsers: ReadonlyArray<express5.RequestHandler>) => {
        const found: Array<unknown> = []
        await inBackend(
          (app, tenure) => {
            for (const parser of parsers) app.use(parser)
            app.use(membershipMiddleware(tenure), membershipErrors(tenure))
          },
          async (call) => {
            for (const [type, content, encoding] of requests) {
              const more = encoding === undefined ? {} : { "content-encoding": encoding }
              const { body, status } = await call(path, content, type, more)
              found.push([status, { ...Object(body), request_id: undefined }])
            }
          },
        )
        return found
      }
      const parsers = [json, express.urlencoded({ extended: false }), express.text()]
      return Promise.all([answers([]), answers(parsers)]).then(([before, behind]) => {
        // A charset is no reason for Tenure to refuse JSON, but the parser cannot read this one.
        expect(before[1]).toMatchObject([200, {}])
        expect(behind[1]).toMatchObject([400, { error: { error_code: "MALFORMED_REQUEST" } }])
        expect(behind.toSpliced(1, 1)).toEqual(before.toSpliced(1, 1))
      })
    })

    it("leaves to the backend what its parsers refuse elsewhere, and what others refuse", () =>
      inBackend(
        (app, tenure) => {
          const verify = (request: { readonly url?: string | undefined }) => {
            if (request.url === path) throw new Error("not signed")
          }
          app.use(express.json({ verify }))
          app.use(membershipMiddleware(tenure), membershipErrors(tenure))
          app.use(((error, _request, response, _next) => {
            response.status(418).send(String(error.type))
          }) satisfies express5.ErrorRequestHandler)
        },
        async (call) => {
          expect((await call(path)).text).toBe("entity.verify.failed")
          expect((await call("/other", "{")).text).toBe("entity.parse.failed")
        },
      ))

    it("lets no target with an invalid host pass a guard on its path", () =>
      inBackend(
        (app, tenure) => {
          app.use("/v2", (_request, response) => void response.sendStatus(403))
          app.use(membershipMiddleware(tenure))
        },
        async (call) => {
          for (const host of ["http://x", "http://x;", "http://x'", "http://x%", "http://a@b@c;"]) {
            const { status } = await call(`${host}${path}`)
            expect([403, 404]).toContain(status)
          }
          for (const odd of ["javascript://x", "foo://x;", "http://x:y:z", "http:/"]) {
            expect([403, 404]).toContain((await call(`${odd}${path}`)).status)
          }
        },
      ))

    it("reads a body that other middleware reads as text at the same time", () => {
      let arrive: () => void = () => {}
      const arrived = new Promise<void>((resolve) => (arrive = resolve))
      return inBackend(
        (app, tenure) => {
          app.use((request, _response, next) => {
            request.setEncoding("utf8").on("data", () => arrive())
            next()
          })
          app.use(membershipMiddleware(tenure))
        },
        async (call, url) => {
          expect((await call(path)).status).toBe(200)
          const { hostname, port } = new URL(url)
          const socket = connect({ host: hostname, port: Number(port) })
          socket.write(`PATCH ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n{"`)
          await arrived
          socket.end("a}")
          expect(await text(socket)).toContain("401")
        },
      )
    })

    it("answers paths that other middleware has rewritten", () =>
      inBackend(
        (app, tenure) => {
          app.use((request, _response, next) => {
            request.url = request.url.replace(/^\/legacy/, "")
            next()
          })
          app.use(membershipMiddleware(tenure))
        },
        async (call) => {
          const response = await call(`/legacy${path}`)
          expect(response.body).toMatchObject({ code: 200, path: `/legacy${path}` })
        },
      ))

    it("passes errors in sending a response to the error handler of the backend", () =>
      inBackend(
        (app, tenure) => {
          app.use((_request, response, next) => {
            const { writeHead } = response
            response.writeHead = () => {
              response.writeHead = writeHead
              throw new Error("a listener of the backend's")
            }
            next()
          })
          app.use(membershipMiddleware(tenure))
          app.use(((error, _request, response, _next) => {
            response.status(418).send(String(error))
          }) satisfies express5.ErrorRequestHandler)
        },
        async (call) => expect((await call(path)).status).toBe(418),
      ))

    it("answers 400 if other middleware has read the body and discarded it", () =>
      inBackend(
        (app, tenure) => {
          app.use((request, _response, next) => {
            request.resume().on("end", () => next())
          })
          app.use(membershipMiddleware(tenure))
        },
        async (call) => {
          const response = await call(path)
          expect(response.status).toBe(400)
          expect(response.text).toContain("read before")
        },
      ))

    it("authenticates by the sessions of the backend", () =>
      inBackend(
        (app, tenure) => {
          app.use((request, response, next) => {
            response.locals["user"] = request.get("cookie") === "session=1" ? "alice" : undefined
            next()
          })
          const authenticate = async ({ res }: express5.Request) => {
            const user = res?.locals["user"]
            return user === undefined ? undefined : { keyId: user, projects: ["p1"] }
          }
          app.use(membershipMiddleware(tenure, { authenticate }))
        },
        async (call, url) => {
          expect((await call(path)).status).toBe(401)
          const headers = { cookie: "session=1", "content-type": "application/json" }
          const body = JSON.stringify({ extend })
          const response = await send(url, { method: "PATCH", path, headers, body })
          expect(response.status).toBe(200)
        },
      ))

    it("counts requests by req.ip if useExpressIp is true", () =>
      inBackend(
        (app, tenure) => {
          app.set("trust proxy", true)
          app.use(membershipMiddleware(tenure, { useExpressIp: true }))
        },
        async (_call, url) => {
          const remaining = async (client: string) => {
            const headers = { "x-forwarded-for": client }
            const response = await send(url, { method: "PATCH", path, headers })
            return response.headers["x-ratelimit-remaining"]
          }
          expect(await remaining("203.0.113.1")).toBe("299")
          expect(await remaining("203.0.113.1")).toBe("298")
          expect(await remaining("203.0.113.2")).toBe("299")
          // Some proxies add the port.
          expect(await remaining("203.0.113.2:4711")).toBe("298")
          // What is not an address counts as the socket's.
          expect(await remaining("one")).toBe("299")
          expect(await remaining("two")).toBe("298")
        },
      ))
  })
}
