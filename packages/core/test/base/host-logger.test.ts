import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect, it, vi } from "vitest"
import { emptyBody } from "../../src/http/request.ts"
import { RateLimitStore } from "../../src/limits/buckets.ts"
import type { Fields, HostLogger } from "../../src/telemetry/host-logger.ts"
import { createTenure } from "../../src/tenure.ts"

const secret = "tnr_secret"

const request = {
  method: "GET",
  path: "/v2/projects/p1/integrations/webhooks",
  headers: { authorization: `Bearer ${secret}` },
  body: emptyBody,
  remoteAddress: undefined,
}

interface Entry {
  readonly level: string
  readonly fields: Fields
  readonly message: string
}

/** A logger that keeps what it is given. */
const keeping = () => {
  const entries: Array<Entry> = []
  const write = (level: string) => (fields: Fields, message: string) =>
    void entries.push({ level, fields, message })
  const logger: HostLogger = { info: write("info"), warn: write("warn"), error: write("error") }
  return { entries, logger }
}

it("tells the host's logger once of an X-Forwarded-For that is ignored", async () => {
  const { entries, logger } = keeping()
  const tenure = await createTenure({ stores: memory(), logger })
  const headers = { "x-forwarded-for": "1.2.3.4\nforged" }
  for (let n = 0; n < 3; n++)
    await tenure.handle({ ...request, headers, remoteAddress: "10.0.0.1" })
  await tenure.close()
  expect(entries).toMatchObject([
    { level: "warn", message: expect.stringContaining("X-Forwarded-For from 10.0.0.1 is ignored") },
  ])
  expect(JSON.stringify(entries)).not.toContain("forged")
})

const brokenLimits = Layer.succeed(RateLimitStore, {
  ping: Effect.void,
  take: () => Effect.die(new Error("a defect")),
})

/** Has a request end in a defect, which is logged. */
const logDefect = async (logger: HostLogger) => {
  const tenure = await createTenure({
    stores: memory(),
    logger,
    authenticate: () => {
      throw new Error("a defect")
    },
  })
  await tenure.handle(request)
  await tenure.close()
}

describe("the logger of the host", () => {
  it("gets an entry with its fields, and nothing else does", async () => {
    const log = vi.spyOn(console, "log").mockReturnValue()
    const { entries, logger } = keeping()
    await logDefect(logger)
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

  const fullDisk = new Error("a full disk")

  it.each([
    [
      "throw",
      () => {
        throw fullDisk
      },
    ],
    ["reject", () => Promise.reject(fullDisk)],
  ])("may %s: the console gets the entry", async (_how, fail) => {
    const log = vi.spyOn(console, "log").mockReturnValue()
    await logDefect({ info: fail, warn: fail, error: fail })
    expect(log).toHaveBeenCalledOnce()
    expect(String(log.mock.calls[0])).toContain("A request ended in a defect")
  })

  it("gets what stores and services log, too", async () => {
    const { entries, logger } = keeping()
    const tenure = await createTenure({ stores: [memory(), brokenLimits], logger })
    await tenure.handle(request)
    await tenure.close()
    expect(entries.map(({ message }) => message)).toContain("The store of rate limits has a defect")
  })

  it.each([{}, "pino", { info: 1 }, null])("is not %j", async (logger) => {
    // @ts-expect-error: plain JavaScript does not notice.
    const making = createTenure({ stores: memory(), logger })
    await expect(making).rejects.toMatchObject({ _tag: "InvalidInput", field: "logger" })
  })

  it("may be the console", async () => {
    const error = vi.spyOn(console, "error").mockReturnValue()
    await logDefect(console)
    expect(error.mock.calls[0]?.[1]).toBe("A request ended in a defect")
  })
})
