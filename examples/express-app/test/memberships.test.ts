import { type Event, type Tenure, createTenure } from "@tenure/core"
import { memory } from "@tenure/memory"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { onPayment } from "../src/memberships.ts"

const payment = { id: "payment-1", clubId: "chess", userId: "1", year: 2030 }
const member = { projectId: "chess", userId: "1" }

let events: Array<Event>
let tenure: Tenure

beforeEach(async () => {
  events = []
  tenure = await createTenure({ stores: memory(), onEvent: (event) => void events.push(event) })
  await tenure.memberships.createProject("chess")
})

afterEach(() => tenure.close())

describe("a payment", () => {
  it("grants a membership to the end of the year, and publishes events", async () => {
    await onPayment(tenure, payment)
    const { endDate } = await tenure.memberships.find(member)
    expect(endDate).toBe(Date.parse("2031-01-01T00:00:00.000Z"))
    expect(events.map(({ body }) => JSON.parse(body))).toMatchObject([
      { type: "membership.granted" },
      { type: "payment.completed", data: { payment_id: "payment-1", user_id: "1", year: 2030 } },
    ])
  })

  it("does not shorten a membership", async () => {
    const endDate = Date.parse("2099-01-01T00:00:00.000Z")
    await tenure.memberships.grant({ ...member, endDate })
    await onPayment(tenure, payment)
    expect(await tenure.memberships.find(member)).toMatchObject({ endDate })
  })
})
