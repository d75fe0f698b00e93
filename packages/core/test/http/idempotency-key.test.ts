/** The header field `Idempotency-Key`: which keys are valid, and what makes two requests the same. */

import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import {
  type IdempotencyKey,
  digestOf,
  idempotencyKeyFormat,
} from "../../src/base/change-context.ts"
import { ApiKeyId } from "../../src/base/values.ts"
import { type Call, performWithIdempotency } from "../../src/http/operation.ts"
import { type ApiRequest, type Body, consumedBody, emptyBody } from "../../src/http/request.ts"
import type { Principal } from "../../src/keys/identity.ts"

const utf8 = new TextEncoder()

const principal: Principal = {
  keyId: ApiKeyId("a key"),
  role: "client",
  projects: new Set(["p1"]),
  isReadOnly: false,
}

const post: ApiRequest = {
  method: "POST",
  path: "/v2/projects/p1/events",
  headers: { "idempotency-key": "a" },
  body: emptyBody,
  remoteAddress: undefined,
}

const callOf = (parts: Partial<ApiRequest>, project_id = "p1"): Call => ({
  request: { ...post, ...parts },
  requestId: "a request",
  principal,
  params: {
    project_id,
    user_id: "",
    webhook_id: "",
    event_id: "",
    key_id: "",
    bulk_extension_id: "",
  },
})

/** Performs a call. Returns its outcome, and the call that the operation gets. */
const perform = async (call: Call, isKnown = false) => {
  const performed: Array<Call> = []
  const outcome = await Effect.runPromise(
    Effect.result(
      performWithIdempotency(call, (inner) =>
        Effect.sync(() => {
          performed.push(inner)
          if (isKnown) inner.once?.onReplay?.()
          return { message: "Done.", data: null }
        }),
      ),
    ),
  )
  return { outcome, performed }
}

const onceOf = async (parts: Partial<ApiRequest>): Promise<IdempotencyKey | undefined> => {
  const { performed } = await perform(callOf(parts))
  return performed[0]?.once
}

const withField = (field: string | ReadonlyArray<string>) => ({
  headers: { "idempotency-key": field },
})

const malformed = {
  failure: {
    _tag: "MalformedRequest",
    message: `The Idempotency-Key header must be sent once, and be ${idempotencyKeyFormat}, with or without quotation marks.`,
  },
}

describe("an idempotency key", () => {
  it.each([
    ["a", "a"],
    ['"a"', "a"],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['a"b\\c', 'a"b\\c'],
    ["x".repeat(255), "x".repeat(255)],
  ])("is known by its digest: %s", async (field, key) => {
    expect(await onceOf(withField(field))).toMatchObject({ owner: "a key", key: digestOf(key) })
  })

  it.each(["", '""', '"a', '"a"b"', '"a\\', '"a\\b"', '"a"b', "a b", "ü", "x".repeat(256)])(
    "is refused as %j",
    async (field) => {
      const { outcome, performed } = await perform(callOf(withField(field)))
      expect([outcome, performed]).toMatchObject([malformed, []])
    },
  )

  it("is sent once", async () => {
    expect((await perform(callOf(withField(["a", "a"])))).outcome).toMatchObject(malformed)
  })

  it("means nothing to a request that reads, or that only inherits it", async () => {
    const inherited: ApiRequest["headers"] = Object.create(post.headers)
    for (const parts of [
      { method: "GET", headers: { "idempotency-key": "" } },
      { headers: inherited },
    ]) {
      const call = callOf(parts)
      expect((await perform(call)).performed).toEqual([call])
    }
  })
})

describe("a request that was answered before", () => {
  it("is told from one that was not", async () => {
    const result = { message: "Done.", data: null }
    expect((await perform(callOf({}))).outcome).toEqual(
      expect.objectContaining({ success: result }),
    )
    expect((await perform(callOf({}), true)).outcome).toMatchObject({
      success: { ...result, isReplay: true },
    })
  })

  const fingerprintOf = async (parts: Partial<ApiRequest>) => (await onceOf(parts))?.fingerprint

  const bytes = (text: string): Body => ({ _tag: "Bytes", bytes: utf8.encode(text) })

  it("has the same method, path, query and body", async () => {
    const requests: ReadonlyArray<Partial<ApiRequest>> = [
      {},
      withField("b"),
      { method: "PATCH" },
      { path: "/v2/projects/p1/event" },
      { query: "a" },
      { query: "b" },
      { body: bytes("{}") },
      { body: bytes('{"a":1}') },
      { body: bytes('{"a":2}') },
    ]
    const fingerprints = await Promise.all(requests.map(fingerprintOf))
    expect(new Set(fingerprints).size).toBe(requests.length)
    expect(await Promise.all(requests.map(fingerprintOf))).toEqual(fingerprints)
  })

  it("may have an empty query in place of none", async () => {
    expect(await fingerprintOf({ query: "" })).toBe(await fingerprintOf({}))
  })

  it("has the same body, whoever reads it", async () => {
    const sent = await fingerprintOf({ body: bytes('{"a":1}') })
    const read = async () => ({ _tag: "Parsed", value: { a: 1 } }) as const
    expect(await fingerprintOf({ body: await read() })).toBe(sent)
    expect(await fingerprintOf({ body: { _tag: "Deferred", read } })).toBe(sent)
  })

  it("may have a body that is not known, or cannot be written", async () => {
    const nothing = await fingerprintOf({})
    const value: Array<unknown> = []
    value.push(value)
    expect(await fingerprintOf({ body: consumedBody })).toBe(nothing)
    expect(await fingerprintOf({ body: { _tag: "Parsed", value } })).toBe(nothing)
  })
})

describe("the body of a request with an idempotency key", () => {
  const deferred = () => {
    const reads: Array<string> = []
    const body: Body = {
      _tag: "Deferred",
      read: async () => {
        reads.push("read")
        return consumedBody
      },
    }
    return { body, reads }
  }

  it("is read once, before the operation", async () => {
    const { body, reads } = deferred()
    const { performed } = await perform(callOf({ body }, ""))
    expect(performed[0]?.request).toEqual({ ...post, body: consumedBody })
    expect(reads).toEqual(["read"])
  })

  it("is not read for the project of another", async () => {
    const { body, reads } = deferred()
    const { outcome } = await perform(callOf({ ...withField(""), body }, "p2"))
    expect(outcome).toMatchObject({ failure: { _tag: "ProjectNotFound" } })
    expect(reads).toEqual([])
  })
})
