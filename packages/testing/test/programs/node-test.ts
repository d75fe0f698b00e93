/** Tests for Node's runner, which ends by itself only if nothing is left running. */

import assert from "node:assert/strict"
import { test } from "node:test"
import { testTenure } from "@tenure/testing"

test("a member is reminded, and the end is announced", async (context) => {
  const { clock, close, tenure, webhooks } = await testTenure()
  context.after(close)
  await webhooks.register("club")
  const endDate = "2030-01-31T00:00:00.000Z"
  await tenure.memberships.grant({ projectId: "club", userId: "1001", endDate })
  webhooks.failNext("timeout", 3)
  await clock.advance("31 days")
  await webhooks.next("membership.expiring")
  const { data } = await webhooks.next("membership.expired")
  assert.equal(data.end_date, endDate)
  webhooks.failNext("timeout")
  await tenure.events.publish({ projectId: "club", type: "left.unanswered", data: {} })
})
