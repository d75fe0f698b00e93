/** Every response of the suite of adapters is as documented, and all that is documented is seen. */

import type { Mountable } from "@tenure/core/Mountable"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport, serve } from "@tenure/node-http"
import { adapterSuite } from "@tenure/testing"
import { describe, expect, it } from "vitest"
import { all, check, faults, faultsOfExamples, seen } from "./contract.ts"

/** Checks every response before it is sent. */
const checked = (tenure: Tenure.Tenure): Mountable => ({
  ...tenure,
  handle: async (request) => {
    const response = await tenure.handle(request)
    check(request, tenure.basePath, response)
    return response
  },
  answer: (request, deliver) =>
    tenure.answer(request, (response) => {
      check(request, tenure.basePath, response)
      deliver(response)
    }),
})

adapterSuite("as documented", {
  isStandalone: true,
  start: async (options) => {
    const tenure = await Tenure.make({ ...options, stores: memory(), transport: nodeTransport })
    const server = await serve(checked(tenure))
    const close = async () => {
      await server.close()
      await tenure.close()
    }
    return { url: server.url, tenure, close }
  },
})

/** The statuses that the suite of adapters cannot cause, and why. */
const unseen: Readonly<Record<string, string>> = {
  408: "takes the time of a slow request; the tests of servers cause it",
  431: "the server answers before it knows the path; the tests of servers cause it",
  500: "takes a defect; the tests of the handler cause it",
}

describe("the document", () => {
  it("describes every response", () => {
    expect([...faults]).toEqual([])
  })

  it("has no response that is not seen, except for those with a reason", () => {
    const missing = all.filter(
      (one) => !seen.has(one) && !Object.keys(unseen).some((status) => one.endsWith(status)),
    )
    expect(missing).toEqual([])
  })

  it("has examples that its schemas allow", () => {
    expect(faultsOfExamples()).toEqual([])
  })
})
