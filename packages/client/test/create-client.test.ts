import { inspect } from "node:util"
import { describe, expect, it } from "vitest"
import { createClient } from "../src/create-client.ts"
import { isTenureError } from "../src/response.ts"
import { answering, errorOf, failure, success } from "./support.ts"

const token = "tnr_secret-of-the-client"
const project = { project_id: "p1" }
const none = success([], { total: 0 })

/** Prints all properties in an error. */
const told = (error: unknown): string => inspect(error, { depth: null, showHidden: true })

describe("a response that is not one of Tenure", () => {
  it.each([
    ["an empty one", 200, ""],
    ["a page of a proxy", 200, "<html>Welcome</html>"],
    ["another JSON", 200, "[1]"],
    ["null", 200, "null"],
    ["a result without data", 200, JSON.stringify({ ok: true, request_id: "r" })],
    ["a result without id", 200, JSON.stringify({ ok: true, data: {} })],
    ["a success with another status", 201, success({})],
    ["a failure with status 200", 200, JSON.stringify({ ok: false, request_id: "r", data: {} })],
    ["an error without code", 404, failure(404, { message: "?" })],
    ["no errors", 422, JSON.stringify({ ok: false, request_id: "r", errors: [] })],
    ["errors that are none", 422, JSON.stringify({ ok: false, request_id: "r", errors: [1] })],
    ["a page of an error", 500, "oops"],
  ])("is an INVALID_RESPONSE: %s", (_, status, text) =>
    answering(
      (response) => void response.writeHead(status).end(text),
      async ({ client, received }) => {
        const error = await errorOf(client({ token }).webhooks.list(project))
        expect(isTenureError(error, "INVALID_RESPONSE") && error.status).toBe(status)
        expect(told(error)).not.toContain(text === "" ? token : text)
        expect(received.length).toBe(1)
      },
    ),
  )

  it("is not read further than `maxResponseBytes`", async () => {
    let isCut = (): void => {}
    const cut = new Promise<void>((resolve) => (isCut = resolve))
    await answering(
      (response) => {
        const chunk = Buffer.alloc(65_536, "x")
        const pump = () => {
          while (response.write(chunk));
        }
        response.on("drain", pump).on("close", isCut)
        pump()
      },
      async ({ client }) => {
        const error = await errorOf(client({ maxResponseBytes: 1_000_000 }).webhooks.list(project))
        expect(error).toMatchObject({
          code: "INVALID_RESPONSE",
          message: expect.stringContaining("longer than 1000000 bytes"),
        })
        await cut
      },
    )
  })
})

describe("the token", () => {
  it.each([301, 302, 307, 308])("is not sent to where a %i leads", (status) =>
    answering(
      (response) => void response.end(none),
      (other) =>
        answering(
          (response) => void response.writeHead(status, { location: `${other.url}/v2` }).end(),
          async ({ client, received }) => {
            const error = await errorOf(client().webhooks.list(project))
            expect(error).toMatchObject({ code: "INVALID_RESPONSE", status })
            expect(received.length).toBe(1)
            expect(other.received).toEqual([])
          },
        ),
    ),
  )

  it("is in no error, though the server repeats it", () =>
    answering(
      (response, request) => {
        const message = `You sent ${request.headers.authorization}`
        response.writeHead(401).end(failure(401, { error_code: "UNAUTHORIZED", message }))
      },
      async ({ client }) => {
        const error = await errorOf(client({ token }).webhooks.list(project))
        expect(isTenureError(error, "UNAUTHORIZED")).toBe(true)
        expect(told(error)).not.toContain(token)
      },
    ))

  it("is in no error of the network, and not in the client", async () => {
    const client = createClient({ baseUrl: "http://127.0.0.1:1", token, maxRetries: 0 })
    const error = await errorOf(client.webhooks.list(project))
    expect(isTenureError(error, "NETWORK_ERROR")).toBe(true)
    expect(told(error)).not.toContain(token)
    expect(told(client) + JSON.stringify(client)).not.toContain(token)
  })
})

describe("an id in a path", () => {
  // Untyped programs pass such ids, and JavaScript has already rounded the number.
  const others = JSON.parse("[175928847299117063, null, {}]")

  it.each(["..", ".", "", "\ud800", ...others])(
    "cannot be %j, which may be another one's",
    (project_id) =>
      answering(
        (response) => void response.end(success(null)),
        async ({ client, received }) => {
          const error = await errorOf(client().webhooks.delete({ project_id, webhook_id: "w" }))
          expect(String(error)).toBe(
            'TypeError: project_id must be a text without lone surrogates, and neither empty nor "." nor ".."',
          )
          expect(received).toEqual([])
        },
      ),
  )

  it.each(["a/b", "a%2Fb", "a?b#c", "../x", "ü", "a b"])("is encoded: %j", (webhook_id) =>
    answering(
      (response) => void response.end(success(null)),
      async ({ client, received }) => {
        await client().webhooks.delete({ ...project, webhook_id })
        const [, , , , , , encoded = "", ...rest] = received[0]?.url?.split("/") ?? []
        expect([decodeURIComponent(encoded), rest]).toEqual([webhook_id, []])
      },
    ),
  )
})

describe("an option", () => {
  const url = "baseUrl must be an http or https URL without user, query or fragment"
  const text = "token must be a text of visible ASCII characters"

  it.each([
    ...[
      "",
      "example.com",
      "ftp://example.com",
      "http://user:password@example.com",
      "http://example.com/?a",
      "http://example.com/#a",
    ].map((baseUrl) => ({ given: { baseUrl }, message: url })),
    ...[`${token}\n`, `${token} x`, `${token}ü`, ""].map((one) => ({
      given: { token: one },
      message: text,
    })),
  ])("cannot be $given", ({ given, message }) => {
    const make = () => createClient({ baseUrl: "http://127.0.0.1:1", token: "t", ...given })
    expect(make).toThrow(new TypeError(message))
  })

  it.each(["timeout", "maxRetries", "maxWait", "maxResponseBytes"])(
    "%s is a whole number",
    (name) => {
      for (const value of [-1, 0.5, NaN, Infinity, 2 ** 31]) {
        const make = () => createClient({ baseUrl: "http://a", token: "t", [name]: value })
        expect(make).toThrow(`${name} must be a whole number`)
      }
    },
  )

  it("baseUrl may have a path, with or without a slash at its end", () =>
    answering(
      (response) => void response.end(none),
      async ({ client, received, url: origin }) => {
        for (const baseUrl of [`${origin}/members`, `${origin}/members//`])
          await client({ baseUrl }).webhooks.list(project)
        const path = "/members/v2/projects/p1/integrations/webhooks"
        expect(received.map((request) => request.url)).toEqual([path, path])
      },
    ))
})
