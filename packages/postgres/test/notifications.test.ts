/** Notifications that arrive together. */

import { Fixture } from "@tenure/testing/conformance"
import { expect, it } from "vitest"
import { makePendingChanges } from "../src/notifications.ts"

const { id: one } = Fixture.makeWebhook(Fixture.p1)
const { id: other } = Fixture.makeWebhook(Fixture.p1)

it("changes that arrive together are all taken, each once, removals first", () => {
  const pending = makePendingChanges()
  pending.addDue()
  pending.addStopped(one)
  pending.addStopped(other)
  pending.addStopped(one)
  pending.addDue()
  const taken = []
  while (!pending.isEmpty()) taken.push(pending.take())
  expect(taken).toEqual([
    { _tag: "Stopped", webhookId: one },
    { _tag: "Stopped", webhookId: other },
    { _tag: "Due" },
  ])
  expect(pending.take()).toBeUndefined()
})
