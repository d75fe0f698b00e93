/** The console behind a request: its files, who sees them, and what is secret. */

import { type Identity, type TenureOptions, createTenure } from "@tenure/core"
import { type ApiRequest, emptyBody } from "@tenure/core/adapter"
import { memory } from "@tenure/memory"
import { describe, expect, it, onTestFinished } from "vitest"
import { type ConsoleOptions, tenureConsole } from "../src/index.ts"

const fromPage = { "sec-fetch-site": "same-origin", "content-type": "application/json" }

const make = async (given?: ConsoleOptions, more: TenureOptions = {}) => {
  const tenure = await createTenure({ stores: memory(), ...more })
  onTestFinished(tenure.close)
  await tenure.memberships.createProject("p1")
  const mounted = tenureConsole(tenure, given)
  /** Sends a request, by default as the page does. */
  const ask = async (path: string, request: Partial<ApiRequest> = {}) => {
    const { body, headers, status } = await mounted.handle({
      method: "GET",
      path: `/console${path}`,
      headers: fromPage,
      body: emptyBody,
      remoteAddress: "203.0.113.7",
      ...request,
    })
    return { text: String(body), headers, status }
  }
  return { tenure, mounted, ask }
}

const ada: Identity = { keyId: "ada", projects: "all", role: "admin" }
const forAda = { authorize: () => ada }
const byKey = { authorize: "api-key" } as const

it.each(["/", "/app.js", "/session", "/api/v2/projects"])(
  "without authorize, %s is answered 403",
  async (path) => {
    const { ask } = await make()
    expect((await ask(path)).status).toBe(403)
  },
)

describe("the files", () => {
  it.each([
    ["/", "text/html; charset=utf-8"],
    ["/app.js", "text/javascript; charset=utf-8"],
    ["/style.css", "text/css; charset=utf-8"],
    ["/icon.svg", "image/svg+xml"],
  ])("%s has the type %s, and may do nothing but what the page does", async (path, type) => {
    const { ask } = await make(forAda)
    const { headers, status } = await ask(path, { headers: {} })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      "Content-Type": type,
      "Cache-Control": "no-store",
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
    })
    const policy = headers["Content-Security-Policy"]
    expect(policy).toContain("default-src 'none'; script-src 'self';")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain("unsafe")
  })

  it("are kept by browsers in the version that the page names, and in no other", async () => {
    const { ask } = await make(byKey)
    const version = /app\.js\?(\w+)/.exec((await ask("/")).text)?.[1]
    const cacheOf = async (query?: string) =>
      (await ask("/app.js", { query })).headers["Cache-Control"]
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
    const { ask } = await make(byKey)
    const { text } = await ask("/", { originalPath })
    expect(text).toMatch(/<link rel="icon" href="[^"]*icon\.svg\?\w+" \/>/)
    expect(/src="([^"?]*)\?/.exec(text)?.[1]).toBe(script)
  })

  it("are only read, and have nothing inline, and nothing from other hosts", async () => {
    const { ask } = await make(byKey)
    const answer = await ask("/app.js", { method: "POST" })
    expect([answer.status, answer.headers["Allow"]]).toEqual([405, "GET, HEAD"])
    const { text } = await ask("/")
    expect(text).not.toMatch(/<style|style=|\son\w+=|https?:|<script(?![^>]*src=)/)
  })
})

describe("a function of the host", () => {
  it("decides who sees the page, unless the adapter has one", async () => {
    const { ask } = await make({
      authorize: ({ headers }) => (headers["cookie"] === "me" ? ada : undefined),
    })
    const statusFor = async (cookie: string, path: string) =>
      (await ask(path, { headers: { ...fromPage, cookie } })).status
    expect(await statusFor("me", "/")).toBe(200)
    expect(await statusFor("you", "/")).toBe(403)
    expect(await statusFor("me", "/api/v2/projects")).toBe(200)
    expect(await statusFor("you", "/api/v2/projects")).toBe(401)
    expect(await statusFor("me", "/session")).toBe(403)
    expect((await ask("/", { authenticate: () => ada })).status).toBe(200)
  })

  it.each(["/", "/api/v2/projects"])("that throws is at fault, and is logged: %s", async (path) => {
    const faults: Array<unknown> = []
    const authorize = () => {
      throw new Error("no database")
    }
    const onError: TenureOptions["onError"] = ({ cause }) => void faults.push(cause)
    const { ask } = await make({ authorize }, { onError })
    const answer = await ask(path)
    expect(answer.status).toBe(500)
    expect(answer.text).not.toContain("database")
    expect(faults).toHaveLength(1)
  })

  it("may admit those who only read", async () => {
    const { ask } = await make({ authorize: () => ({ ...ada, readOnly: true }) })
    expect((await ask("/api/v2/api-keys")).status).toBe(200)
    expect((await ask("/api/v2/projects/p1", { method: "DELETE" })).status).toBe(403)
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
    const { ask } = await make(forAda)
    const answer = await ask("/api/v2/projects/p1", { method, headers })
    expect(answer.status).toBe(status)
    expect(answer.headers["Content-Security-Policy"]).toContain("default-src 'none'")
  })

  it("is in the log as it was sent", async () => {
    const seen: Array<unknown> = []
    const onResponse: TenureOptions["onResponse"] = ({ keyId, path }) =>
      void seen.push([path, keyId])
    const { ask } = await make(forAda, { onResponse })
    await ask("/api/v2/projects")
    expect(seen).toEqual([["/console/api/v2/projects", "ada"]])
  })
})

describe("what is secret", () => {
  /** A project with a webhook and an event. */
  const prepare = async () => {
    const made = await make(forAda, {
      webhooks: { dispatch: false },
      rateLimits: { burst: { limit: 100, window: "1 second" } },
    })
    const { events, webhooks } = made.tenure
    const url = "https://receiver.example/hook"
    const data = "the data of the event"
    const { id, secret } = await webhooks.create({ projectId: "p1", url })
    const eventId = await events.publish({ projectId: "p1", type: "t", data })
    return { ...made, data, eventId, id, secret }
  }

  it("is in no answer that the audit trail does not have", async () => {
    const { ask, data, eventId, id, mounted, secret, tenure } = await prepare()
    const values: Readonly<Record<string, string>> = {
      ":project_id": "p1",
      ":user_id": "1001",
      ":webhook_id": id,
      ":event_id": eventId,
    }
    const countShown = async () => {
      const rows = await tenure.memberships.history({ projectId: "p1", limit: 100 })
      return rows.filter(({ action }) => action.endsWith("_shown")).length
    }
    const shown: Array<string> = []
    for (const pattern of mounted.patterns.filter((one) => one.startsWith("/api/"))) {
      const path = pattern.replaceAll(/:\w+/g, (name) => values[name] ?? "none")
      const query = pattern.endsWith("/events") ? "after=start&data=true" : undefined
      const before = await countShown()
      const { text } = await ask(path, { query })
      if (!text.includes(secret) && !text.includes(data)) continue
      shown.push(pattern.split("/").at(-1) ?? "")
      expect(await countShown(), pattern).toBe(before + 1)
    }
    expect(shown.toSorted()).toEqual([":event_id", ":event_id", ":webhook_id"])
  })

  it("is not in lists, which have the rest", async () => {
    const { ask, eventId, id } = await prepare()
    const webhooks = JSON.parse((await ask("/api/v2/projects/p1/integrations/webhooks")).text)
    expect(webhooks).toMatchObject({
      data: [{ id, disabled_at: null }],
      path: "/console/api/v2/projects/p1/integrations/webhooks",
    })
    const headers = { ...fromPage, accept: "text/event-stream" }
    const events = await ask("/api/v2/projects/p1/events", { query: "after=start", headers })
    expect(JSON.parse(events.text).data).toMatchObject([{ id: eventId, data: null }])
  })

  it.each(["/v2/realtime", "/v2/realtime/tickets"])("cannot be followed by %s", async (path) => {
    const { mounted, tenure } = await make(forAda)
    expect([mounted.owns(`/console/api${path}`), tenure.owns(path)]).toEqual([false, true])
  })
})

describe("signing in", () => {
  const makeSigning = async (more: TenureOptions = {}) => {
    const { ask, tenure } = await make(byKey, more)
    const signIn = async (token: string, headers: object = {}) => {
      const authorization = `Bearer ${token}`
      const from = { ...fromPage, authorization, origin: "https://tenure.example" }
      const answer = await ask("/session", { method: "POST", headers: { ...from, ...headers } })
      return { status: answer.status, cookie: answer.headers["Set-Cookie"] }
    }
    return { ask, signIn, apiKeys: tenure.apiKeys }
  }

  it.each([
    { role: "operator", token: undefined },
    // Hosts may have chosen a token.
    { role: "admin", token: 'a;b, "c"=%d' },
  ] as const)("works with the key of an $role", async ({ role, token }) => {
    const { apiKeys, ask, signIn } = await makeSigning()
    const issued = await apiKeys.issue({ projects: ["p1"], role, token })
    const { cookie = "", status } = await signIn(issued.token)
    expect(status).toBe(200)
    expect(cookie).toMatch(/^tenure_console=[^;]+; HttpOnly; SameSite=Strict; Secure$/)
    const headers = { ...fromPage, cookie: `other=1; ${cookie.split(";")[0]}` }
    const answer = await ask("/api/v2/identity", { headers })
    expect(JSON.parse(answer.text).data).toMatchObject({ role })
  })

  it("sets a cookie that a browser takes at localhost without TLS", async () => {
    const { apiKeys, signIn } = await makeSigning()
    const { token } = await apiKeys.issue({ projects: ["p1"], role: "admin" })
    const { cookie } = await signIn(token, { origin: "http://localhost:3000" })
    expect(cookie).toMatch(/SameSite=Strict$/)
  })

  it("is refused with the key of a client, an unknown key, and from other pages", async () => {
    const { apiKeys, signIn } = await makeSigning()
    const { token } = await apiKeys.issue({ projects: ["p1"] })
    const answers = [
      await signIn(token),
      await signIn("unknown"),
      await signIn(token, { "sec-fetch-site": "cross-site" }),
      await signIn(token, { "content-type": "text/plain" }),
    ]
    expect(answers).toEqual([403, 401, 403, 415].map((status) => ({ status, cookie: undefined })))
  })

  it("ends by signing out", async () => {
    const { ask } = await makeSigning()
    const { headers, status } = await ask("/session", { method: "DELETE" })
    expect([status, headers["Set-Cookie"]]).toEqual([
      200,
      "tenure_console=; Max-Age=0; HttpOnly; SameSite=Strict; Secure",
    ])
  })

  it("counts guesses like those at the API", async () => {
    const { signIn } = await makeSigning({
      rateLimits: { perAddress: { limit: 2, window: "1 minute" } },
    })
    const statuses: Array<number> = []
    for (const guess of ["a", "b", "c"]) statuses.push((await signIn(guess)).status)
    expect(statuses).toEqual([401, 401, 429])
  })
})

describe("the console", () => {
  it("owns its paths and those of the API behind them", async () => {
    const { mounted } = await make({ path: "/admin/members" }, { basePath: "/app" })
    expect(mounted.basePath).toBe("/app/admin/members")
    for (const rest of ["", "/", "/app.js", "/session", "/api/v2/status"])
      expect(mounted.owns(`/app/admin/members${rest}`), rest).toBe(true)
    for (const rest of ["/other", "/api", "/api/v2/other", "x", "/app.jsx"])
      expect(mounted.owns(`/app/admin/members${rest}`), rest).toBe(false)
    expect(mounted.owns("/app/v2/status")).toBe(false)
  })

  it("reads as much of a body as the API", async () => {
    const { mounted, tenure } = await make(forAda)
    const path = "/v2/projects/p1/memberships/import"
    expect(mounted.bodyLimit("POST", `/console/api${path}`)).toEqual(tenure.bodyLimit("POST", path))
  })

  it("needs the whole API", async () => {
    await expect(make({}, { api: "contract" })).rejects.toThrow(TypeError)
  })

  it.each([
    ['{"authorise":true}', "authorise"],
    ['{"authorize":true}', "authorize"],
    ['{"authorize":"api-keys"}', "authorize"],
    ['{"path":"console"}', "path"],
  ])("refuses the options %s by name", async (options, field) => {
    const refused = { _tag: "InvalidInput", field }
    await expect(make(JSON.parse(options))).rejects.toThrow(expect.objectContaining(refused))
  })
})
