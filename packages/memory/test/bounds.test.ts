import { describe, expect, it } from "@effect/vitest"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const projectId = "p1"
const endDate = "2099-01-01T00:00:00.000Z"

describe("what is kept of the past", () => {
  it.live("is the newest rows of the audit trail, as many as asked for", () =>
    Effect.promise(async () => {
      const tenure = await Tenure.make({ stores: memory({ history: 3 }) })
      await tenure.memberships.createProject(projectId)
      for (const userId of ["1", "2", "3", "4", "5"]) {
        await tenure.memberships.grant({ projectId, userId, endDate })
      }
      const rows = await tenure.memberships.history({ projectId })
      expect(rows.map(({ userId }) => userId)).toEqual(["5", "4", "3"])
      await tenure.close()
    }),
  )

  it.live("is the newest deliveries that have ended, and all that wait", () => {
    const stores = memory({ history: 3 })
    return Effect.gen(function* () {
      const { events, memberships, webhooks } = yield* Tenure.promises
      yield* Effect.promise(() => memberships.createProject(projectId))
      const { id } = yield* Effect.promise(() =>
        webhooks.create({ projectId, url: "http://192.0.2.1/" }),
      )
      for (let count = 0; count < 5; count++) {
        yield* Effect.promise(() => events.publish({ projectId, type: "test", data: count }))
      }
      yield* Effect.promise(() => webhooks.delete({ projectId, webhookId: id }))
      const deliveries = yield* Effect.promise(() =>
        webhooks.deliveries({ projectId, webhookId: id }),
      )
      expect(deliveries).toHaveLength(3)
    }).pipe(
      Effect.provide(
        Layer.provideMerge(
          Tenure.layer({ webhooks: { allowedNetworks: ["192.0.2.0/24"] } }),
          stores,
        ),
      ),
    )
  })
})

describe("an option that is not what it has to be", () => {
  it.each([
    ["history", { history: 0 }],
    ["maxBuckets", { maxBuckets: 1.5 }],
  ])("is named: %s", async (field, options) => {
    await expect(Tenure.make({ stores: memory(options) })).rejects.toMatchObject({
      _tag: "InvalidInput",
      field,
    })
  })
})
