/** The console behind a request: its files, who sees them, and what is secret. */

import { type Identity, type TenureOptions, createTenure } from "@tenure/core"
import { type ApiRequest, emptyBody } from "@tenure/core/adapter"
import { memory } from "@tenure/memory"
import { describe, expect, it, onTestFinished } from "vitest"
import { type ConsoleOptions, tenureConsole } from "../src/index.ts"

const make = async (given?: ConsoleOptions, more: TenureOptions = {}) => {
  const tenure = await createTenure({ stores: memory(), ...more })
  onTestFinished(tenure.close)
  await tenure.memberships.createProject("p1")
  return { tenure, mounted: tenureConsole(tenure, given) }
}

const fromPage = { "sec-fetch-site": "same-origin", "content-type": "application/json" }

const request = (path: string, given: Partial<ApiRequest> = {}): ApiRequest => ({
  method: "GET",
  path,
  headers: fromPage,
  body: emptyBody,
  remoteAddress: "203.0.113.7",
  ...given,
})

const ada: Identity = { keyId: "ada", projects: "all", role: "admin" }

const paths = ["/console/", "/console/app.js", "/console/session", "/console/api/v2/projects"]

describe("without authorize", () => {
  it.each(paths)("%s is answered 403", async (path) => {
    const { mounted } = await make()
    expect((await mounted.handle(request(path))).status).toBe(403)
  })
})

describe("the files", () => {
  it.each([
    ["/console/", "text/html; charset=utf-8"],
    ["/console/app.js", "text/javascript; charset=utf-8"],
    ["/console/style.css", "text/css; charset=utf-8"],
    ["/console/icon.svg", "image/svg+xml"],
  ])("%s has the type %s, and may do nothing but what the page does", async (path, type) => {
    const { mounted } = await make({ authorize: () => ada })
    const { headers, status } = await mounted.handle(request(path, { headers: {} }))
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      "Content-Type": type,
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
    })
    expect(headers["Content-Security-Policy"]).toContain("default-src 'none'; script-src 'self';")
    expect(headers["Content-Security-Policy"]).toContain("frame-ancestors 'none'")
    expect(headers["Content-Security-Policy"]).not.toContain("unsafe")
  })

  it("are kept by browsers in the version that the page names, and in no other", async () => {
    const { mounted } = await make({ authorize: "api-key" })
    const { body } = await mounted.handle(request("/console/"))
    const version = /app\.js\?(\w+)/.exec(String(body))?.[1]
    const cacheOf = async (query?: string) =>
      (await mounted.handle(request("/console/app.js", { query }))).headers["Cache-Control"]
    expect(await cacheOf(version)).toBe("private, max-age=31536000, immutable")
    expect([await cacheOf("another"), await cacheOf()]).toEqual(["no-store", "no-store"])
  })

  it.each([
    ["/console", "./console/app.js"],
    ["/console/", "app.js"],
    // A host that mounts the console, or a proxy that adds the slash, and says so.
    ["/operators", "./operators/app.js"],
    ['/a/b&"<c:d', "./b&amp;&quot;&lt;c:d/app.js"],
    ["/a/$1$&", "./$1$&amp;/app.js"],
  ])("at %s, the page finds its script at %s", async (originalPath, script) => {
    const { mounted } = await make({ authorize: "api-key" })
    const { body } = await mounted.handle(request("/console/", { originalPath }))
    expect(String(body)).toMatch(/<link rel="icon" href="[^"]*icon\.svg\?\w+" \/>/)
    expect(/src="([^"?]*)\?/.exec(String(body))?.[1]).toBe(script)
  })

  it("are only read", async () => {
    const { mounted } = await make({ authorize: "api-key" })
    const answer = await mounted.handle(request("/console/app.js", { method: "POST" }))
    expect([answer.status, answer.headers["Allow"]]).toEqual([405, "GET, HEAD"])
  })

  it("have nothing inline, and nothing from other hosts", async () => {
    const { mounted } = await make({ authorize: "api-key" })
    const html = String((await mounted.handle(request("/console/"))).body)
    expect(html).not.toMatch(/<style|style=|\son\w+=|https?:|<script(?![^>]*src=)/)
  })
})

describe("a function of the host", () => {
  it("decides who sees the page", async () => {
    const authorize = ({ headers }: ApiRequest) => (headers["cookie"] === "me" ? ada : undefined)
    const { mounted } = await make({ authorize })
    const ask = async (cookie: string, path: string) =>
      (await mounted.handle(request(path, { headers: { ...fromPage, cookie } }))).status
    expect(await ask("me", "/console/")).toBe(200)
    expect(await ask("you", "/console/")).toBe(403)
    expect(await ask("me", "/console/api/v2/projects")).toBe(200)
    expect(await ask("you", "/console/api/v2/projects")).toBe(401)
    expect(await ask("me", "/console/session")).toBe(403)
  })

  it("of an adapter takes precedence", async () => {
    const { mounted } = await make({ authorize: () => undefined })
    const { status } = await mounted.handle(request("/console/", { authenticate: () => ada }))
    expect(status).toBe(200)
  })

  it("that throws is at fault, and is logged", async () => {
    const faults: Array<unknown> = []
    const authorize = () => {
      throw new Error("no database")
    }
    const { mounted } = await make(
      { authorize },
      { onError: ({ cause }) => void faults.push(cause) },
    )
    for (const path of ["/console/", "/console/api/v2/projects"]) {
      const answer = await mounted.handle(request(path))
      expect(answer.status).toBe(500)
      expect(answer.body).not.toContain("database")
    }
    expect(faults).toHaveLength(2)
  })

  it("may admit those who only read", async () => {
    const { mounted } = await make({ authorize: () => ({ ...ada, readOnly: true }) })
    const ask = async (method: string, path: string) =>
      (await mounted.handle(request(`/console/api${path}`, { method }))).status
    expect(await ask("GET", "/v2/api-keys")).toBe(200)
    expect(await ask("DELETE", "/v2/projects/p1")).toBe(403)
  })
})

describe("a request to the API", () => {
  it.each<readonly [string, string, ApiRequest["headers"], number]>([
    ["GET", "of the page", { "sec-fetch-site": "same-origin" }, 200],
    ["GET", "of another site", { "sec-fetch-site": "cross-site" }, 403],
    ["GET", "of another host of the site", { "sec-fetch-site": "same-site" }, 403],
    ["GET", "typed by a user", { "sec-fetch-site": "none" }, 403],
    ["GET", "of a browser that says nothing", {}, 403],
    ["PUT", "of the page", fromPage, 200],
    ["PUT", "of another site", { ...fromPage, "sec-fetch-site": "cross-site" }, 403],
    ["PUT", "of the page as a form", { ...fromPage, "content-type": "text/plain" }, 415],
    ["PUT", "of the page without a type", { "sec-fetch-site": "same-origin" }, 415],
  ])("with %s %s", async (method, _name, headers, status) => {
    const { mounted } = await make({ authorize: () => ada })
    const answer = await mounted.handle(request("/console/api/v2/projects/p1", { method, headers }))
    expect(answer.status).toBe(status)
    expect(answer.headers["Content-Security-Policy"]).toContain("default-src 'none'")
  })

  it("is in the log as it was sent", async () => {
    const seen: Array<unknown> = []
    const { mounted } = await make(
      { authorize: () => ada },
      { onResponse: ({ keyId, path }) => void seen.push([path, keyId]) },
    )
    await mounted.handle(request("/console/api/v2/projects"))
    expect(seen).toEqual([["/console/api/v2/projects", "ada"]])
  })
})

describe("what is secret", () => {
  const data = "the data of the event"

  /** A project with a webhook and an event, and what reads it as the page may. */
  const prepare = async () => {
    const { mounted, tenure } = await make(
      { authorize: () => ada },
      { webhooks: { dispatch: false }, rateLimits: { burst: { limit: 100, window: "1 second" } } },
    )
    const url = "https://receiver.example/hook"
    const { id, secret } = await tenure.webhooks.create({ projectId: "p1", url })
    const eventId = await tenure.events.publish({ projectId: "p1", type: "t", data })
    const countShown = async () => {
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 100 })
      return rows.filter(({ action }) => action.endsWith("_shown")).length
    }
    const ask = async (path: string, query?: string, headers: object = {}) => {
      const asked = request(`/console/api${path}`, { query, headers: { ...fromPage, ...headers } })
      return String((await mounted.handle(asked)).body)
    }
    return { ask, countShown, eventId, id, mounted, secret, tenure }
  }

  it("is in no answer that the audit trail does not have", async () => {
    const { ask, countShown, eventId, id, mounted, secret } = await prepare()
    const values: Readonly<Record<string, string>> = {
      ":project_id": "p1",
      ":user_id": "1001",
      ":webhook_id": id,
      ":event_id": eventId,
    }
    const shown: Array<string> = []
    for (const pattern of mounted.patterns.filter((one) => one.startsWith("/api/"))) {
      const path = pattern.slice(4).replaceAll(/:\w+/g, (name) => values[name] ?? "none")
      const query = pattern.endsWith("/events") ? "after=start&data=true" : undefined
      const before = await countShown()
      const answer = await ask(path, query)
      if (!answer.includes(secret) && !answer.includes(data)) continue
      shown.push(pattern)
      expect(await countShown(), pattern).toBe(before + 1)
    }
    expect(shown.map((pattern) => pattern.split("/").at(-1)).toSorted()).toEqual([
      ":event_id",
      ":event_id",
      ":webhook_id",
    ])
  })

  it("is not in lists, which have the rest", async () => {
    const { ask, eventId, id } = await prepare()
    const webhooks = JSON.parse(await ask("/v2/projects/p1/integrations/webhooks"))
    expect(webhooks.data).toMatchObject([{ id, disabled_at: null }])
    expect(webhooks.path).toBe("/console/api/v2/projects/p1/integrations/webhooks")
    const events = await ask("/v2/projects/p1/events", "after=start", {
      accept: "text/event-stream",
    })
    expect(JSON.parse(events).data).toMatchObject([{ id: eventId, data: null }])
  })

  it("cannot be followed", async () => {
    const { mounted, tenure } = await make({ authorize: () => ada })
    for (const path of ["/v2/realtime", "/v2/realtime/tickets"]) {
      expect([mounted.owns(`/console/api${path}`), tenure.owns(path)]).toEqual([false, true])
    }
  })
})

describe("signing in", () => {
  const signIn = (token: string, headers: object = {}) =>
    request("/console/session", {
      method: "POST",
      headers: {
        ...fromPage,
        authorization: `Bearer ${token}`,
        origin: "https://tenure.example",
        ...headers,
      },
    })

  it.each(["operator", "admin"] as const)("works with the key of an %s", async (role) => {
    const { mounted, tenure } = await make({ authorize: "api-key" })
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role })
    const { headers, status } = await mounted.handle(signIn(token))
    expect(status).toBe(200)
    const cookie = headers["Set-Cookie"] ?? ""
    expect(cookie).toMatch(/^tenure_console=[^;]+; HttpOnly; SameSite=Strict; Secure$/)
    const session = { ...fromPage, cookie: `other=1; ${cookie.split(";")[0]}` }
    const answer = await mounted.handle(request("/console/api/v2/identity", { headers: session }))
    expect(JSON.parse(String(answer.body)).data).toMatchObject({ role })
  })

  it("takes tokens that hosts have chosen", async () => {
    const { mounted, tenure } = await make({ authorize: "api-key" })
    const token = 'a;b, "c"=%d'
    await tenure.apiKeys.issue({ projects: ["p1"], role: "admin", token })
    const { headers } = await mounted.handle(signIn(token))
    const cookie = headers["Set-Cookie"]?.split(";")[0]
    const answer = await mounted.handle(
      request("/console/api/v2/identity", { headers: { ...fromPage, cookie } }),
    )
    expect(answer.status).toBe(200)
  })

  it("sets a cookie that a browser takes at localhost without TLS", async () => {
    const { mounted, tenure } = await make({ authorize: "api-key" })
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"], role: "admin" })
    const { headers } = await mounted.handle(signIn(token, { origin: "http://localhost:3000" }))
    expect(headers["Set-Cookie"]).not.toContain("Secure")
  })

  it("is refused with the key of a client, an unknown key, and from other pages", async () => {
    const { mounted, tenure } = await make({ authorize: "api-key" })
    const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    const answers = await Promise.all(
      [
        signIn(token),
        signIn("unknown"),
        signIn(token, { "sec-fetch-site": "cross-site" }),
        signIn(token, { "content-type": "text/plain" }),
      ].map(mounted.handle),
    )
    expect(answers.map(({ status }) => status)).toEqual([403, 401, 403, 415])
    for (const { headers } of answers) expect(headers["Set-Cookie"]).toBeUndefined()
  })

  it("ends by signing out", async () => {
    const { mounted } = await make({ authorize: "api-key" })
    const { headers, status } = await mounted.handle(
      request("/console/session", { method: "DELETE" }),
    )
    expect([status, headers["Set-Cookie"]]).toEqual([
      200,
      "tenure_console=; Max-Age=0; HttpOnly; SameSite=Strict; Secure",
    ])
  })

  it("counts guesses like those at the API", async () => {
    const { mounted } = await make(
      { authorize: "api-key" },
      { rateLimits: { perAddress: { limit: 2, window: "1 minute" } } },
    )
    const statuses: Array<number> = []
    for (const guess of ["a", "b", "c"]) {
      statuses.push((await mounted.handle(signIn(guess))).status)
    }
    expect(statuses).toEqual([401, 401, 429])
  })
})

describe("the console", () => {
  it("owns its paths and those of the API behind them", async () => {
    const { mounted } = await make({ path: "/admin/members" }, { basePath: "/app" })
    expect(mounted.basePath).toBe("/app/admin/members")
    for (const rest of ["", "/", "/app.js", "/session", "/api/v2/status"]) {
      expect(mounted.owns(`/app/admin/members${rest}`), rest).toBe(true)
    }
    for (const rest of ["/other", "/api", "/api/v2/other", "x", "/app.jsx"]) {
      expect(mounted.owns(`/app/admin/members${rest}`), rest).toBe(false)
    }
    expect(mounted.owns("/app/v2/status")).toBe(false)
  })

  it("reads as much of a body as the API", async () => {
    const { mounted, tenure } = await make({ authorize: () => ada })
    const path = "/v2/projects/p1/memberships/import"
    expect(mounted.bodyLimit("POST", `/console/api${path}`)).toEqual(tenure.bodyLimit("POST", path))
  })

  it("needs the whole API", async () => {
    const tenure = await createTenure({ stores: memory(), api: "contract" })
    expect(() => tenureConsole(tenure)).toThrow(TypeError)
  })

  it.each([
    ['{"authorise":true}', "authorise"],
    ['{"authorize":true}', "authorize"],
    ['{"authorize":"api-keys"}', "authorize"],
    ['{"path":"console"}', "path"],
  ])("refuses the options %s by name", async (options, field) => {
    const tenure = await createTenure({ stores: memory() })
    expect(() => tenureConsole(tenure, JSON.parse(options))).toThrow(
      expect.objectContaining({ _tag: "InvalidInput", field }),
    )
  })
})
