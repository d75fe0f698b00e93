/** The page in `docs/feed.md` that follows the feed by WebSocket. */

import { createTenure } from "tenure"
import { memory } from "tenure/memory"
import { serve } from "tenure/node"
import { expect, it, onTestFinished, vi } from "vitest"
import { findExamples, writeExamples } from "./examples.ts"

it("shows events as they happen, also those that come between two connections", async () => {
  const examples = await findExamples()
  const page = examples.filter(({ code }) => code.includes("export const show"))
  const folder = await writeExamples("realtime", page)
  const { show } = await import(`${folder}/${page[0]?.name}.ts`)

  const tenure = await createTenure({ stores: memory() })
  await tenure.memberships.createProject("p1")
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  const server = await serve(tenure)
  onTestFinished(async () => {
    await server.close()
    await tenure.close()
  })
  let tickets = 0
  const askForTicket = async () => {
    tickets += 1
    const response = await fetch(`${server.url}/v2/realtime/tickets`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ projects: ["p1"] }),
    })
    const { data } = Object(await response.json())
    // The page has no way to stop but a ticket that never comes.
    return tickets < 3 ? data.ticket : new Promise(() => {})
  }
  const sockets: Array<WebSocket> = []
  class Watched extends WebSocket {
    constructor(...args: ConstructorParameters<typeof WebSocket>) {
      super(...args)
      sockets.push(this)
    }
  }
  vi.stubGlobal("WebSocket", Watched)
  onTestFinished(() => void vi.unstubAllGlobals())
  const shown: Array<string> = []
  const note = ({ type }: { type: string }) => shown.push(type)
  await show(server.url.replace("http", "ws"), askForTicket, note)
  const publish = (type: string) => tenure.events.publish({ projectId: "p1", type, data: {} })
  const countAfterPublishing = async () => {
    await publish("a")
    return shown.length
  }
  await expect.poll(countAfterPublishing).toBeGreaterThan(0)
  sockets[0]?.close()
  await publish("b")
  await expect.poll(() => shown.at(-1)).toBe("b")
  expect(shown.filter((type) => type === "b")).toHaveLength(1)
})
