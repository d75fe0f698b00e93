/** Every response in the adapter suite is as documented, and every documented response is seen. */

import { createTenure } from "@tenure/core"
import { apiErrors, routes } from "@tenure/core/internal"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import { adapterSuite } from "@tenure/testing/conformance"
import * as Struct from "effect/Struct"
import { describe, expect, it } from "vitest"
import { checked } from "./checked.ts"
import { all, faults, faultsOfExamples, seen, seenErrors } from "./contract.ts"
import { causeErrors } from "./every.ts"

adapterSuite("as documented", {
  isStandalone: true,
  start: async (options) => {
    const tenure = await createTenure({ ...options, stores: memory(), transport: nodeTransport })
    const server = await serve(checked(tenure))
    const close = async () => {
      await server.close()
      await tenure.close()
    }
    return { url: server.url, tenure, close }
  },
})

const inProgress = "a first request must hang in the store; the tests of stores cause it"

/** The responses no test here causes, with reasons. */
const unseen: Readonly<Record<string, string>> = {
  "memberships.extendAll 409": inProgress,
  "memberships.end 409": inProgress,
  "memberships.grant 409": inProgress,
  "memberships.import 409": inProgress,
  "memberships.update 409": inProgress,
  "projects.create 409": inProgress,
  "projects.delete 409": inProgress,
  "projects.update 409": inProgress,
  "webhooks.cancel 409": inProgress,
  "memberships.extendSome 409": inProgress,
  "webhooks.create 409": inProgress,
  "webhooks.update 409": inProgress,
  "webhooks.delete 409": inProgress,
  "webhooks.enable 409": inProgress,
  "webhooks.rotate 409": inProgress,
  "events.publish 409": inProgress,
  "apiKeys.issue 409": inProgress,
  "apiKeys.revoke 409": inProgress,
  "docs.document 500": "it asks neither the host nor a store",
  "docs.asyncDocument 500": "it asks neither the host nor a store",
  "docs.page 500": "it asks neither the host nor a store",
}

describe("the document", () => {
  it("describes every response", async () => {
    await causeErrors()
    expect([...faults]).toEqual([])
  })

  it("has no response that is not seen, except for those with a reason", () => {
    expect(new Set(all.filter((one) => !seen.has(one)))).toEqual(new Set(Object.keys(unseen)))
  })

  it("declares no error that no test causes", () => {
    const declared = Struct.keys(routes).flatMap((operation) => {
      const route = routes[operation]
      return "errors" in route
        ? route.errors.map((tag) => `${operation} ${apiErrors[tag].code}`)
        : []
    })
    expect(declared.length).toBeGreaterThan(20)
    expect(declared.filter((one) => !seenErrors.has(one))).toEqual([])
  })

  it("has examples that its schemas allow", () => {
    expect(faultsOfExamples()).toEqual([])
  })
})
