import { describe, expect, it } from "vitest"
import { isTenureError } from "../src/response.ts"
import { recordedSleep, serving, stores } from "./support.ts"

const extend = "2099-01-01T00:00:00.000Z"
const project = { project_id: "p1" }
const ended = "2001-09-09T01:46:40.000Z"

describe.each(Object.entries(stores))("on %s", (_, store) => {
  it("memberships are extended, and read one by one and as a list", async () => {
    await serving({ stores: store() }, async ({ client }) => {
      const { memberships } = client()
      const { data } = await memberships.extend({ ...project, user_id: "1001", extend })
      expect(data).toEqual({ new_end_date: extend })
      const metadata = { plan: "gold" }
      await memberships.update({ ...project, user_id: "1001", metadata })
      const active = { user_id: "1001", end_date: extend, state: "active", metadata }
      expect((await memberships.get({ ...project, user_id: "1001" })).data).toEqual(active)
      const found: Array<unknown> = []
      for await (const member of memberships.list({ ...project, limit: 1 })) found.push(member)
      const others = ["1002", "1003"].map((user_id) => ({
        user_id,
        end_date: ended,
        state: "expired",
        metadata: {},
      }))
      expect(found).toEqual([active, ...others])
      expect((await memberships.extendAll({ ...project, extend })).total).toBe(3)
    })
  })

  it("webhooks are created, listed and deleted", async () => {
    await serving({ stores: store() }, async ({ client }) => {
      const { webhooks } = client()
      const { data } = await webhooks.create({ ...project, url: "https://receiver.example/" })
      expect(data.secret).toMatch(/^whsec_/)
      expect((await webhooks.list(project)).data).toMatchObject([{ id: data.id }])
      expect((await webhooks.delete({ ...project, webhook_id: data.id })).data).toBe(null)
      expect((await webhooks.list(project)).total).toBe(0)
    })
  })

  it("a creation whose response was lost is repeated, and made once", async () => {
    await serving({ stores: store() }, async ({ client }) => {
      let attempts = 0
      const losing: typeof fetch = async (input, init) => {
        const response = await fetch(input, init)
        attempts += 1
        if (attempts > 2) return response
        await response.text()
        throw new TypeError("fetch failed")
      }
      const { sleep } = recordedSleep()
      const { data } = await client({ fetch: losing, sleep }).webhooks.create({
        ...project,
        url: "https://receiver.example/",
      })
      expect(attempts).toBe(3)
      const { data: all } = await client().webhooks.list(project)
      expect(all.map(({ id, secret }) => ({ id, secret }))).toEqual([
        { id: data.id, secret: data.secret },
      ])
    })
  })

  it("memberships are imported line by line, once although the response was lost", async () => {
    await serving({ stores: store() }, async ({ client, tenure }) => {
      let attempts = 0
      const losing: typeof fetch = async (input, init) => {
        const response = await fetch(input, init)
        attempts += 1
        if (attempts > 1) return response
        await response.text()
        throw new TypeError("fetch failed")
      }
      const { memberships } = client({ fetch: losing, sleep: recordedSleep().sleep })
      function* lines() {
        for (const user_id of ["1003", "2001"]) yield { user_id, end_date: extend }
      }
      expect((await memberships.import({ ...project, lines: lines() })).total).toBe(2)
      expect(attempts).toBe(2)
      const history = await tenure.memberships.history({ projectId: "p1" })
      expect(history.filter(({ action }) => action === "imported")).toHaveLength(3 + 2)
      const bad = [
        { user_id: "1", end_date: extend },
        { user_id: "a b", end_date: extend },
      ]
      const error = await memberships.import({ ...project, lines: bad }).catch((caught) => caught)
      expect(isTenureError(error, "VALIDATION_ERROR") && error.problems).toMatchObject([
        { line: 2 },
      ])
    })
  })

  it("an import is only tried in a dry run, which tells the webhooks", async () => {
    await serving({ stores: store() }, async ({ client, tenure }) => {
      const { memberships } = client()
      const before = await tenure.memberships.list({ projectId: "p1" })
      const lines = [{ user_id: "2001", end_date: extend }]
      const dry = { dry_run: "true", events: "true" } as const
      const { data, total } = await memberships.import({ ...project, ...dry, lines })
      expect({ data, total }).toEqual({
        total: 1,
        data: {
          would_grant: 1,
          would_shorten: 0,
          would_stay: 0,
          events: { total: 0, by_type: {}, first: [] },
        },
      })
      expect(await tenure.memberships.list({ projectId: "p1" })).toEqual(before)
    })
  })

  it("a conflict tells what the end date is", async () => {
    await serving({ stores: store() }, async ({ client }) => {
      const { memberships } = client()
      const expected = { expected_end_date: "2030-01-01T00:00:00.000Z" }
      const call = memberships.extend({ ...project, user_id: "1001", extend, ...expected })
      const error = await call.catch((caught: unknown) => caught)
      const problems = isTenureError(error, "END_DATE_CONFLICT") ? error.problems : []
      expect(problems.map((problem) => problem.current_end_date)).toEqual([ended])
    })
  })
})
