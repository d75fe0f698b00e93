import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect, it, vi } from "vitest"
import { type ApiRequest, emptyBody } from "../../src/http/request.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import type { HostLogger } from "../../src/telemetry/host-logger.ts"
import { type CreateTenureOptions, createTenure } from "../../src/tenure.ts"
import { recordingLogger } from "../support/logger.ts"

const secret = "tnr_secret"

const request = {
  method: "GET",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: { authorization: `Bearer ${secret}` },
  body: emptyBody,
  remoteAddress: undefined,
}

/** Answers a request, and returns the log entries. */
const entriesOf = async (
  options: Partial<CreateTenureOptions>,
  requests: ReadonlyArray<ApiRequest> = [request],
) => {
  const { entries, logger } = recordingLogger()
  const tenure = await createTenure({ stores: memory(), logger, ...options })
  for (const one of requests) await tenure.handle(one)
  await tenure.close()
  return entries
}

const authenticate = (): never => {
  throw new Error("a defect")
}

describe("the logger of the host", () => {
  it("gets an entry with its fields, and nothing else does", async () => {
    const log = vi.spyOn(console, "log").mockReturnValue()
    const entries = await entriesOf({ authenticate })
    expect(entries).toEqual([
      {
        level: "error",
        message: "A request ended in a defect",
        fields: {
          request_id: expect.stringMatching(/^[\da-f-]{36}$/),
          cause: expect.stringContaining("Error: a defect"),
        },
      },
    ])
    expect(JSON.stringify(entries)).not.toContain(secret)
    expect(log).not.toHaveBeenCalled()
  })

  it("is told once of an X-Forwarded-For that is ignored", async () => {
    const headers = { ...request.headers, "x-forwarded-for": "1.2.3.4\nforged" }
    const forwarded = { ...request, headers, remoteAddress: "10.0.0.1" }
    const entries = await entriesOf({}, [forwarded, forwarded, forwarded])
    const message = expect.stringContaining("X-Forwarded-For from 10.0.0.1 is ignored")
    expect(entries).toMatchObject([{ level: "warn", message }])
    expect(JSON.stringify(entries)).not.toContain("forged")
  })

  it("gets what stores and services log, too", async () => {
    const take = () => Effect.die(new Error("a defect"))
    const limits = Layer.succeed(RateLimitStore, { ping: Effect.void, take })
    const entries = await entriesOf({ stores: [memory(), limits] })
    expect(entries.map(({ message }) => message)).toContain("The store of rate limits has a defect")
  })

  const fullDisk = new Error("a full disk")

  it.each<readonly [string, HostLogger["info"]]>([
    [
      "throw",
      () => {
        throw fullDisk
      },
    ],
    ["reject", () => Promise.reject(fullDisk)],
  ])("may %s: the console gets the entry", async (_how, fail) => {
    const log = vi.spyOn(console, "log").mockReturnValue()
    await entriesOf({ authenticate, logger: { info: fail, warn: fail, error: fail } })
    expect(log).toHaveBeenCalledOnce()
    expect(String(log.mock.calls[0])).toContain("A request ended in a defect")
  })

  it("may be the console", async () => {
    const error = vi.spyOn(console, "error").mockReturnValue()
    await entriesOf({ authenticate, logger: console })
    expect(error.mock.calls[0]?.[1]).toBe("A request ended in a defect")
  })

  it.each([{}, "pino", { info: 1 }, null])("is not %j", async (logger) => {
    // @ts-expect-error: plain JavaScript does not notice.
    const making = createTenure({ stores: memory(), logger })
    await expect(making).rejects.toMatchObject({ _tag: "InvalidInput", field: "logger" })
  })
})
