import { describe, expect, it } from "@effect/vitest"
import { createTenure } from "@tenure/core"
import { memory } from "../src/index.ts"

const projectId = "p1"
const endDate = "2099-01-01T00:00:00.000Z"

describe("the history", () => {
  it("keeps the newest rows of the audit trail", async () => {
    const tenure = await createTenure({ stores: memory({ history: 3 }) })
    await tenure.memberships.createProject(projectId)
    for (const userId of ["1", "2", "3", "4", "5"]) {
      await tenure.memberships.grant({ projectId, userId, endDate })
    }
    const rows = await tenure.memberships.history({ projectId })
    expect(rows.map(({ userId }) => userId)).toEqual(["5", "4", "3"])
    await tenure.close()
  })

  it("keeps the newest events, and those with deliveries that are kept", async () => {
    const tenure = await createTenure({
      stores: memory({ history: 3 }),
      webhooks: { allowedNetworks: ["192.0.2.0/24"] },
    })
    const { events, memberships, webhooks } = tenure
    await memberships.createProject(projectId)
    const publish = () => events.publish({ projectId, type: "test", data: null })
    const { id } = await webhooks.create({ projectId, url: "http://192.0.2.1/" })
    const delivered = await webhooks.ping({ projectId, webhookId: id })
    await webhooks.delete({ projectId, webhookId: id })
    const all = [await publish(), await publish(), await publish(), await publish()]
    const found = await Promise.allSettled(
      all.map((eventId) => events.find({ projectId, eventId })),
    )
    expect(found.map(({ status }) => status)).toEqual([
      "rejected",
      "fulfilled",
      "fulfilled",
      "fulfilled",
    ])
    const { deliveries, type } = await events.find({ projectId, eventId: delivered })
    expect([type, deliveries.length]).toEqual(["webhook.ping", 1])
    await tenure.close()
  })

  it("keeps the newest deliveries that have ended", async () => {
    const tenure = await createTenure({
      stores: memory({ history: 3 }),
      webhooks: { allowedNetworks: ["192.0.2.0/24"] },
    })
    const { events, memberships, webhooks } = tenure
    await memberships.createProject(projectId)
    const { id } = await webhooks.create({ projectId, url: "http://192.0.2.1/" })
    for (let count = 0; count < 5; count++) {
      await events.publish({ projectId, type: "test", data: count })
    }
    const webhook = { projectId, webhookId: id }
    expect(await webhooks.deliveries(webhook)).toHaveLength(5)
    await webhooks.delete(webhook)
    expect(await webhooks.deliveries(webhook)).toHaveLength(3)
    await tenure.close()
  })
})

it("as many idempotency keys are kept as were asked for, at least the newer half of them", async () => {
  const tenure = await createTenure({ stores: memory({ maxIdempotencyKeys: 4 }) })
  await tenure.memberships.createProject(projectId)
  const publish = (key: number) =>
    tenure.events.publish({ projectId, type: "test", data: key, idempotencyKey: String(key) })
  const ids: Array<string> = []
  for (const key of [1, 2, 3, 4, 5]) ids.push(await publish(key))
  for (const key of [3, 4, 5]) expect(await publish(key)).toBe(ids[key - 1])
  expect(await publish(1)).not.toBe(ids[0])
  await tenure.close()
})
