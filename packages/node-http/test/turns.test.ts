import { AsyncLocalStorage } from "node:async_hooks"
import { expect, it } from "vitest"
import { toNodeHandler } from "../src/handler.ts"
import { afterPendingTurns, nextTurn } from "../src/pipelining.ts"
import { body, extendOne, serving } from "./support.ts"

it("turns run in order, and a turn that is added during another runs last", async () => {
  const taken: Array<string> = []
  await new Promise<void>((resolve) => {
    nextTurn(() => {
      taken.push("first")
      nextTurn(() => {
        taken.push("last")
        resolve()
      })
    })
    nextTurn(() => taken.push("second"))
    expect(taken).toEqual([])
  })
  expect(taken).toEqual(["first", "second", "last"])
})

it("what runs after turns runs after all of them, in their order", async () => {
  const taken: Array<string> = []
  await new Promise<void>((resolve) => {
    nextTurn(() => {
      taken.push("first")
      afterPendingTurns(() => taken.push("after first"))
    })
    nextTurn(() => {
      taken.push("second")
      afterPendingTurns(resolve)
    })
  })
  afterPendingTurns(() => taken.push("at once"))
  expect(taken).toEqual(["first", "second", "after first", "at once"])
})

it("a batch leaves few objects behind, however many turns wait", async () => {
  let [pending, most] = [0, 0]
  const end = () => pending--
  await new Promise<void>((resolve) => {
    for (let turn = 0; turn < 200; turn++) {
      nextTurn(() => {
        most = Math.max(most, ++pending)
        process.nextTick(end)
        if (turn === 199) resolve()
      })
    }
  })
  expect(most).toBe(64)
})

it("the host's authentication runs in the async context of the request", async () => {
  const context = new AsyncLocalStorage<string>()
  await serving(async ({ tenure }) => {
    const handler = toNodeHandler(tenure, {
      authenticate: () => ({ keyId: context.getStore() ?? "nobody", projects: ["p1"] }),
    })
    await serving(
      async ({ url }) => {
        const extend = async (name: string) => {
          const headers = { "content-type": "application/json", "x-name": name }
          const response = await fetch(url + extendOne, { method: "PATCH", headers, body })
          await response.text()
          return response.status
        }
        const names = Array.from({ length: 10 }, (_, index) => `client${index}`)
        expect(new Set(await Promise.all(names.map(extend)))).toEqual(new Set([200]))
        const history = await tenure.memberships.history({ projectId: "p1", limit: names.length })
        expect(history.map(({ origin }) => origin.keyId).toSorted()).toEqual(names)
      },
      {
        listener: (request, response) =>
          context.run(String(request.headers["x-name"]), () => handler(request, response)),
      },
    )
  })
})
