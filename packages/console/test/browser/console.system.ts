/** The console in a browser, at the bundled server: what users do there. */

import { type Identity, createTenure } from "@tenure/core"
import { MembershipStore, Outbox, type StorePorts, StoreUnavailable } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import { serve, toNodeHandler } from "@tenure/node-http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { tenureConsole } from "../../src/index.ts"
import { path, reason } from "./chromium.ts"
import {
  type Session,
  button,
  countRequests,
  field,
  findingsOf,
  heading,
  inDialog,
  openWith,
  says,
  startSession,
} from "./pages.ts"
import { type Server, addHistory, addTroubles, startMachine, tokens } from "./server.ts"

/** Buttons that change nothing: those that list, sort and copy. */
const harmless = /^(Refresh|Active.*|Ends in 7 days.*|Expired.*|All.*|User.*|Ends \(UTC\).*|)$/

/** The page in a test asks faster than people click. */
const quick = { burst: { limit: 1000, window: "1 second" } } as const

const evil = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

describe.skipIf(path === undefined)(
  `the console in Chromium${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    let session: Session
    let server: Server
    let browser: Session["browser"]
    let open: Session["open"]
    let goTo: Session["goTo"]
    let broken: string

    beforeAll(async () => {
      session = await startSession(async (started) => {
        broken = (await addHistory(started)).broken
        await addTroubles(started)
      })
      ;({ browser, goTo, open, server } = session)
    })

    afterAll(() => session.close())

    /** Does something at a place in the shared page, and checks that nothing went wrong. */
    const at = (place: string, test: (page: Page) => Promise<void>) => () =>
      session.visit(place, test)

    const shop = "#/projects/shop"

    describe("signing in", () => {
      it("works with a key of an operator, and lasts until signing out", async () => {
        const { page } = await open("", "")
        await page.getByLabel("API key").fill("unknown")
        await button(page, "Sign in").click()
        await says(page, "This key is not valid or was revoked.")
        await page.getByLabel("API key").fill(tokens.client)
        await button(page, "Sign in").click()
        await says(page, "The console is for the keys of operators and admins.")
        expect(await findingsOf(page)).toEqual([])
        await page.getByLabel("API key").fill(tokens.operator)
        await page.keyboard.press("Enter")
        // An operator of one project begins there.
        await heading(page, "shop Overview").waitFor()
        await page.reload()
        await heading(page, "shop Overview").waitFor()
        expect(await page.evaluate("document.cookie")).toBe("")
        expect(await page.evaluate("localStorage.length")).toBe(0)
        // As hosts redirect that remove the slash.
        await page.goto(`${server.url}/console`)
        await heading(page, "shop Overview").waitFor()
        await page.locator(".menu summary").click()
        await button(page, "Sign out").click()
        await heading(page, "Sign in to Tenure").waitFor()
        await page.context().close()
      })

      it("shows an operator what operators may do", async () => {
        const { faults, page } = await open(`${shop}/members/1001`, tokens.operator)
        await button(page, "Set the end").waitFor()
        const nav = page.getByRole("navigation", { name: "Main" })
        expect(await nav.getByRole("link").allTextContents()).toEqual(["Projects", "shop"])
        expect(faults).toEqual([])
        await page.context().close()
      })

      it("is asked for again when the key is revoked", async () => {
        const { data } = await server.client.apiKeys.issue({ projects: "all", role: "admin" })
        const { page } = await open("#/projects", String(data.token))
        // The projects are the last that the screen asks for: until they are there, it still uses the key.
        await page.locator("main").getByRole("link", { name: "gym" }).waitFor()
        await server.client.apiKeys.revoke({ key_id: data.id })
        await page.getByRole("link", { name: "API keys" }).click()
        await heading(page, "Sign in to Tenure").waitFor()
        await page.context().close()
      })
    })

    it(
      "creates a project, and deletes it when its id is repeated",
      at("#/projects", async (page) => {
        await button(page, "New project").click()
        await page.getByLabel("Id").fill("club")
        await inDialog(page, "Create").click()
        await says(page, "The project club is there.")
        const main = page.locator("main")
        await main.getByRole("link", { name: "club" }).click()
        await page.getByRole("link", { name: "Settings" }).click()
        await button(page, "Delete the project").click()
        await page.getByLabel("The id of the project").fill("other")
        await inDialog(page, "Delete the project").click()
        await says(page, "That is not the id of the project.")
        await page.getByLabel("The id of the project").fill("club")
        await inDialog(page, "Delete the project").click()
        await says(page, "The project club was deleted.")
        await heading(page, "Projects").waitFor()
        await expect.poll(() => page.getByRole("link", { name: "club" }).count()).toBe(0)
      }),
    )

    it(
      "lists members by state and by page, and finds one",
      at(`${shop}/members`, async (page) => {
        const first = page.locator("main tbody tr").first()
        await button(page, "Next").click()
        await says(page, "1130")
        await button(page, "Previous").click()
        await first.getByText("1001").waitFor()
        await page.getByRole("button", { name: /^Expired/ }).click()
        await says(page, "No membership is expired.")
        await page.getByRole("button", { name: /^All ?1\d\d$/ }).waitFor()
        await page.getByRole("searchbox").fill("105")
        await first.getByText("1050").waitFor()
        expect(await page.locator("main tbody tr").count()).toBe(10)
        await page.getByRole("searchbox").fill("1055")
        await first.getByText("1055").waitFor()
        await first.getByRole("link").click()
        await heading(page, "1055").waitFor()
      }),
    )

    it(
      "grants, extends, sets and ends a membership, and shows its history",
      at(`${shop}/members`, async (page) => {
        await button(page, "Grant a membership").click()
        await page.getByLabel("User", { exact: true }).fill("7001")
        await field(page, "end").fill("2030-01-31")
        await button(page, "Exact time").click()
        await page.getByLabel("Time").fill("10:00:00")
        await page.getByLabel("Reason").fill("A friend")
        await inDialog(page, "Grant").click()
        await heading(page, "7001").waitFor()
        await says(page, "A friend")

        await button(page, "Extend").click()
        await button(page, "+1 month").click()
        await says(page, "2030-01-31 10:00:00 → 2030-02-28 10:00:00 UTC, +28 days")
        await inDialog(page, "Dry run").click()
        // The last day of a month that is shorter.
        await says(page, "It would end 2030-02-28 10:00:00 UTC, in place of 2030-01-31 10:00:00.")
        await inDialog(page, "Extend").click()
        await says(page, "The membership ends 2030-02-28 10:00:00 UTC.")
        await page
          .getByRole("listitem")
          .filter({ hasText: /^Extended/ })
          .waitFor()

        await button(page, "Edit").click()
        await page.getByLabel("Name").fill("plan")
        await page.getByLabel("Text").fill("gold <b>")
        await inDialog(page, "Save").click()
        await page.locator("aside").getByText("gold <b>").waitFor()
        await button(page, "Edit").click()
        await page.getByLabel("Text of plan").fill("")
        await inDialog(page, "Save").click()
        await says(page, "None is kept.")

        await button(page, "Set the end").click()
        await field(page, "end").fill("2020-01-01")
        await inDialog(page, "Set the end").click()
        await page.locator(".state", { hasText: "expired" }).waitFor()

        await button(page, "End").click()
        await inDialog(page, "End the membership").click()
        await says(page, "no member")
        expect(await page.getByText("Metadata changed").count()).toBe(2)
        await page
          .getByRole("listitem")
          .filter({ hasText: /^Ended/ })
          .waitFor()
        await button(page, "Grant").waitFor()
      }),
    )

    it(
      "does not extend what somebody else has changed meanwhile",
      at(`${shop}/members/1060`, async (page) => {
        await button(page, "Extend").click()
        await button(page, "+1 year").click()
        await server.client.memberships.grant({
          project_id: "shop",
          user_id: "1060",
          end_date: "2031-01-01T00:00:00.000Z",
        })
        await inDialog(page, "Extend").click()
        await page.getByRole("alert").waitFor()
        expect(
          (await server.client.memberships.get({ project_id: "shop", user_id: "1060" })).data
            .end_date,
        ).toBe("2031-01-01T00:00:00.000Z")
      }),
    )

    it(
      "extends all members after a dry run of the same date",
      at("#/projects/gym", async (page) => {
        await server.client.memberships.grant({
          project_id: "gym",
          user_id: "7002",
          end_date: "2090-01-01T00:00:00.000Z",
        })
        await page.getByLabel("Days", { exact: true }).fill("3")
        await says(page, "with the extension")
        await says(page, "Nothing is changed.")
        await button(page, "Extend all").click()
        expect(await inDialog(page, "Extend all").isDisabled()).toBe(true)
        await field(page, "end").fill("2050-01-01")
        await inDialog(page, "Dry run").click()
        await says(page, "1 of them end later now, and would be shortened.")
        await field(page, "end").fill("2051-01-01")
        expect(await inDialog(page, "Extend all").isDisabled()).toBe(true)
        await inDialog(page, "Dry run").click()
        await inDialog(page, "Extend all").click()
        await says(page, "The new end was set: 1 membership.")
        await says(page, "2051-01-01 00:00")
        await button(page, "Add days").click()
        await field(page, "by").fill("P3D")
        await inDialog(page, "Dry run").click()
        await says(page, "0 would end earlier than now")
        await inDialog(page, "Add to all").click()
        await says(page, "later by P3D")
        await button(page, "Undo").first().click()
        await inDialog(page, "Dry run").click()
        await says(page, "1 would end earlier than now")
        await inDialog(page, "Undo it").click()
        await says(page, "undone")
      }),
    )

    it(
      "creates, pings, rotates, replays and deletes a webhook",
      at("#/projects/gym/webhooks", async (page) => {
        const url = `${server.receiver}/new`
        const shown = url.replace("http://", "")
        await button(page, "New webhook").click()
        await page.getByLabel("URL").fill(url)
        await page.getByLabel("Types of events").fill("payment.completed, webhook.ping")
        await inDialog(page, "Create").click()
        const first = await page.getByRole("dialog").locator("code").textContent()
        expect(first).toMatch(/^whsec_/)
        await inDialog(page, "Close").click()
        await page.getByRole("link", { name: shown }).click()

        expect(await page.getByText("whsec_").count()).toBe(0)
        await button(page, "Show the secret").click()
        await says(page, first ?? "")

        await button(page, "Ping").click()
        await inDialog(page, "Ping").click()
        await expect
          .poll(async () => {
            await button(page, "Refresh").click()
            return page.getByRole("row", { name: "webhook.ping" }).allTextContents()
          })
          .toEqual([expect.stringContaining("delivered")])

        await button(page, "Rotate the secret").click()
        await inDialog(page, "Rotate the secret").click()
        await page.getByRole("dialog").locator("code").waitFor()
        expect(await page.getByRole("dialog").locator("code").textContent()).not.toBe(first)
        await page.keyboard.press("Escape")

        await button(page, "Replay").click()
        await page.getByLabel("Since").fill("2026-01-01")
        await page.getByLabel("Which").selectOption("failed")
        await inDialog(page, "Dry run").click()
        await says(page, "Would be sent again: 0 events.")
        await inDialog(page, "Replay").click()
        await says(page, "Sent again: 0 events.")

        await page.getByRole("row", { name: "webhook.ping" }).getByRole("button").click()
        await button(page, "Send again").click()
        await inDialog(page, "Send again").click()
        await says(page, "The event is sent again.")

        await button(page, "Edit").click()
        await page.getByLabel("Description").fill("The gym's door")
        await page.getByLabel("Attempts a second").fill("500")
        await page.getByLabel("Send a member's events one by one").check()
        await inDialog(page, "Save").click()
        await says(page, "The webhook was changed.")
        await says(page, "The gym's door")
        await says(page, "at most 500")
        await says(page, "a member's events one by one")
        await button(page, "Disable").click()
        await inDialog(page, "Disable").click()
        await says(page, "The webhook is disabled.")
        await page.locator(".state", { hasText: "disabled" }).waitFor()
        await says(page, "by request")

        await button(page, "Delete").click()
        await inDialog(page, "Delete the webhook").click()
        await says(page, "There are no webhooks yet")
      }),
    )

    it(
      "enables a webhook whose receiver said that it is gone",
      at("#/", async (page) => {
        const project_id = "gym"
        const { client, receiver } = server
        const { data } = await client.webhooks.create({ project_id, url: `${receiver}/gone` })
        await client.webhooks.ping({ project_id, webhook_id: data.id })
        await expect
          .poll(async () => (await client.webhooks.get({ project_id, webhook_id: data.id })).data)
          .toMatchObject({ disabled_at: expect.any(String) })
        await goTo(`#/projects/gym/webhooks/${data.id}`)
        await page.locator(".state", { hasText: "disabled" }).waitFor()
        await button(page, "Enable").click()
        await inDialog(page, "Enable").click()
        await says(page, "The webhook is enabled.")
        await button(page, "Enable").waitFor({ state: "detached" })
        await client.webhooks.delete({ project_id, webhook_id: data.id })
      }),
    )

    it(
      "shows events as they come, of the types that are asked for",
      at("#/projects/gym/events", async (page) => {
        const publish = (type: string) =>
          server.client.events.publish({ project_id: "gym", type, data: { secret: type } })
        await page.getByRole("searchbox").fill("door.opened")
        await expect
          .poll(async () => {
            await publish("door.closed")
            await publish("door.opened")
            const [opened, closed] = ["door.opened", "door.closed"].map((name) =>
              page.getByRole("row", { name }).count(),
            )
            return { isOpened: (await opened) !== 0, closed: await closed }
          })
          // What was shown before the choice gives way a moment later.
          .toEqual({ isOpened: true, closed: 0 })
        expect(await page.getByText('"secret"').count()).toBe(0)
        await button(page, "Live: pause").click()
        await button(page, "Paused: go on").waitFor()
      }),
    )

    it(
      "issues a key, shows its token once, and revokes it",
      at("#/keys", async (page) => {
        await button(page, "Issue a key").click()
        await page.getByLabel("Name").fill("nightly import")
        await page.getByLabel("Role").selectOption("operator")
        await page.getByLabel("Projects").fill("shop, gym")
        await inDialog(page, "Issue").click()
        expect(await page.getByRole("dialog").locator("code").textContent()).toMatch(/^tnr_/)
        await inDialog(page, "Close").click()
        await page.locator("dialog").waitFor({ state: "detached" })
        expect(await page.getByText("tnr_").count()).toBe(0)
        const row = page.getByRole("row", { name: /nightly import/ })
        await row.getByText("gym, shop").waitFor()
        await row.getByRole("button", { name: "Revoke" }).click()
        await inDialog(page, "Revoke").click()
        await row.getByText("revoked").waitFor()
      }),
    )

    it(
      "names in the audit trail whoever was shown a secret, data or a request",
      at("#/projects/gym/events", async (page) => {
        const { client, receiver } = server
        const project_id = "gym"
        const { data: hook } = await client.webhooks.create({ project_id, url: `${receiver}/own` })
        const { data: event } = await client.events.publish({
          project_id,
          type: "door.locked",
          data: { door: "north" },
        })
        const shownSince = async () => {
          const { data } = await client.projects.audit({ project_id, limit: 3 })
          return data.map(({ action, subject }) => [action, subject])
        }
        const created = ["webhook_created", hook.id]
        const [shownData, shownSecret] = [
          ["data_shown", event.id],
          ["secret_shown", hook.id],
        ]
        const row = page.getByRole("row", { name: /door.locked/ })
        await row.waitFor()
        await goTo(`#/projects/gym/webhooks/${hook.id}`)
        const sent = page.getByRole("row", { name: "door.locked" })
        await sent.waitFor()
        expect((await shownSince())[0]).toEqual(created)
        await button(page, "Show the secret").click()
        await says(page, hook.secret)
        await sent.getByRole("button").click()
        await button(page, "Show request and responses").click()
        await says(page, `POST ${receiver}/own`)
        await goTo(`#/projects/gym/events/${event.id}`)
        await button(page, "Show data").click()
        await says(page, '"north"')
        expect(await shownSince()).toEqual([shownData, shownData, shownSecret])
        await goTo("#/projects/gym/audit")
        await page.getByTitle(event.id).first().click()
        await heading(page, "door.locked").waitFor()
        await client.webhooks.delete({ project_id, webhook_id: hook.id })
      }),
    )

    it(
      "says who changed what, and leads there",
      at("#/projects/shop/audit", async (page) => {
        const row = page.locator("tr", { hasText: "Invoice 2026-1107 paid" })
        await row.getByText("Extended", { exact: true }).waitFor()
        await row.getByRole("link", { name: "1055" }).click()
        await heading(page, "1055").waitFor()
        await page.getByRole("link", { name: "Audit", exact: true }).first().click()
        await page
          .getByRole("row", { name: /Project created/ })
          .first()
          .waitFor()
        await page.locator("main").getByRole("link", { name: "shop" }).click()
        await heading(page, "shop Overview").waitFor()
      }),
    )

    it(
      "sends an event again from its page",
      at(`${shop}/events`, async (page) => {
        await page
          .getByRole("row", { name: /payment/ })
          .getByRole("link")
          .first()
          .click()
        await button(page, "Send again").first().click()
        await inDialog(page, "Send again").click()
        await says(page, "The event is sent again.")
      }),
    )

    it("shows those whom the host lets only read what there is, and no more", async () => {
      const tenure = await createTenure({ stores: memory(), rateLimits: quick })
      onTestFinished(tenure.close)
      await tenure.memberships.createProject("p")
      await tenure.memberships.grant({ projectId: "p", userId: "1", endDate: 4_070_908_800_000 })
      const handler = toNodeHandler(
        tenureConsole(tenure, {
          authorize: () => ({
            keyId: "Ada",
            projects: "all",
            role: "operator",
            readOnly: true,
          }),
        }),
      )
      const { close, url } = await serve(tenure, { listener: handler })
      onTestFinished(close)
      const { faults, page } = await openWith(browser, { url }, "#/projects/p/members/1", "", {})
      await says(page, "operator, read-only")
      await says(page, "Granted")
      for (const place of ["members/1", "members", "webhooks", "settings", ""]) {
        await page.goto(`${url}/console/#/projects/p/${place}`)
        await page.reload()
        await page.getByRole("heading", { level: 1 }).waitFor()
        await expect.poll(() => page.getByText("Loading…").count()).toBe(0)
        const buttons = await page.locator("main").getByRole("button").allTextContents()
        expect(buttons.filter((one) => !harmless.test(one.trim()))).toEqual([])
      }
      expect(await button(page, "Sign out").count()).toBe(0)
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("says that the database does not answer, and shows nothing as if it were known", async () => {
      let isAway = false
      const lost = new StoreUnavailable({ cause: "away" })
      const unless = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
        Effect.suspend(() => (isAway ? Effect.fail(lost) : effect))
      const lossy = Layer.mergeAll(
        Layer.effect(
          Outbox,
          Effect.map(Outbox, (right) => ({
            ...right,
            ping: unless(right.ping),
            backlog: (most) => unless(right.backlog(most)),
          })),
        ),
        Layer.effect(
          MembershipStore,
          Effect.map(MembershipStore, (right) => ({
            ...right,
            ping: unless(right.ping),
            listProjects: (options) => unless(right.listProjects(options)),
          })),
        ),
      )
      const tenure = await createTenure({
        stores: Layer.provideMerge(lossy, memory()),
        rateLimits: quick,
      })
      onTestFinished(tenure.close)
      await tenure.memberships.createProject("p")
      const admin: Identity = { keyId: "Ada", projects: "all", role: "admin" }
      const console = tenureConsole(tenure, { authorize: () => admin })
      const { close, url } = await serve(tenure, { listener: toNodeHandler(console) })
      onTestFinished(close)

      isAway = true
      const { faults, page } = await openWith(browser, { url }, "#/", "", {})
      await says(page, "Stores do not answer")
      await says(page, "Memberships, Deliveries")
      const figures = page.locator(".figure", { hasText: "–" })
      expect(await figures.locator("dt").allTextContents()).toEqual([
        "Deliveries that wait",
        "Oldest is due for",
        "Given up",
        "Webhooks disabled",
      ])
      expect(await page.getByText("none is due").count()).toBe(0)

      isAway = false
      await page.clock.install()
      await page.reload()
      await says(page, "none is due")
      expect(await page.locator(".stale").count()).toBe(0)
      isAway = true
      const stale = page.locator(".stale", { hasText: "none is due" })
      await page.clock.fastForward(15_000)
      await stale.getByText("As it was at").first().waitFor()
      expect(await findingsOf(page)).toEqual([])

      await page.getByRole("link", { name: "Projects" }).click()
      // An answer from before may arrive late: then the next question tells.
      const banner = page.getByText("The database does not answer. The page tries again.")
      const asked = () => page.clock.fastForward(15_000).then(() => banner.count())
      await expect.poll(asked).toBe(1)
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("tells of keys that are missing, and of those that are suspended", async () => {
      const stores = Layer.succeedContext(
        await Effect.runPromise(Effect.provide(Effect.context<StorePorts>(), memory())),
      )
      const projectId = "p"
      const before = await createTenure({
        stores,
        webhooks: {
          encryption: { current: "key-of-2025", keys: { "key-of-2025": new Uint8Array(32) } },
        },
      })
      await before.memberships.createProject(projectId)
      await before.webhooks.create({ projectId, url: "https://receiver.example/" })
      await before.close()
      const tenure = await createTenure({
        stores,
        webhooks: { missingKeys: "allow" },
        rateLimits: {
          perKey: { limit: 40, window: "1 hour" },
          ...quick,
          suspension: { refusals: 2 },
        },
      })
      onTestFinished(tenure.close)
      const console = tenureConsole(tenure, {
        authorize: ({ headers }) => ({
          keyId: String(headers["x-who"] ?? "Ada"),
          projects: "all",
          role: "admin",
        }),
      })
      const { close, url } = await serve(tenure, { listener: toNodeHandler(console) })
      onTestFinished(close)
      const headers = { "x-who": "busy", "sec-fetch-site": "same-origin" }
      for (let count = 0; count < 45; count++) {
        await (await fetch(`${url}/console/api/v2/identity`, { headers })).text()
      }
      const { faults, page } = await openWith(browser, { url }, "#/", "", {})
      const needs = page.locator(".needs li")
      await needs.filter({ hasText: "key-of-2025" }).waitFor()
      await needs.filter({ hasText: "busy" }).getByRole("link", { name: "Open" }).waitFor()
      expect(await findingsOf(page)).toEqual([])
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("says when changes of a membership are not kept any more", async () => {
      const tenure = await createTenure({ stores: memory({ history: 2 }) })
      onTestFinished(tenure.close)
      const projectId = "p"
      const endDate = 4_070_908_800_000
      await tenure.memberships.createProject(projectId)
      for (const userId of ["1", "2", "3"]) {
        await tenure.memberships.grant({ projectId, userId, endDate })
      }
      await tenure.memberships.extend({ projectId, userId: "3", endDate })
      const admin: Identity = { keyId: "Ada", projects: "all", role: "admin" }
      const console = tenureConsole(tenure, { authorize: () => admin })
      const { close, url } = await serve(tenure, { listener: toNodeHandler(console) })
      onTestFinished(close)

      const { faults, page } = await openWith(browser, { url }, "#/projects/p/members/1", "", {})
      await says(page, "The changes of this membership are not kept any more")
      await page.goto(`${url}/console/#/projects/p/members/4`)
      await says(page, "No change of this membership is kept.")
      await page.goto(`${url}/console/#/projects/p/members/3`)
      await says(page, "Granted")
      expect(await page.getByText("not kept").count()).toBe(0)
      await tenure.memberships.extend({ projectId, userId: "3", endDate })
      await page.reload()
      await says(page, "Earlier changes are not kept any more.")
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("has nothing to press for a project that does not exist", async () => {
      const { faults, page } = await open("#/projects/none/members")
      for (const tab of ["Members", "Webhooks", "Events"]) {
        await page.goto(`${server.url}/console/#/projects/none/${tab.toLowerCase()}`)
        await heading(page, `none ${tab}`).waitFor()
        await says(page, "The project was not found.")
        expect(await page.locator("main").locator("button, input, select").count(), tab).toBe(0)
      }
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("says to an operator what only admins may see", async () => {
      const { page } = await open("#/keys", tokens.operator)
      await says(page, "Only admins may see API keys.")
      await page.goto(`${server.url}/console/#/audit`)
      await says(page, "Only admins of all projects may see this audit trail.")
      await page.context().close()
    })

    it(
      "draws characters that hide, or that turn text around, as JSON writes them",
      at("#/projects", async (page) => {
        const member = { project_id: "gym", user_id: "8001" }
        const shady = "paid \u202e0001\u202c\u200b"
        await server.client.memberships.grant({
          ...member,
          end_date: "2030-01-01T00:00:00.000Z",
          reason: shady,
        })
        await goTo("#/projects/gym/members/8001")
        await says(page, "paid \\u202e0001\\u202c\\u200b")
        await server.client.memberships.end(member)
      }),
    )

    it("shows what was delivered, and to whom requests were refused", async () => {
      const tenure = await createTenure({
        stores: memory(),
        rateLimits: {
          perKey: { limit: 40, window: "1 hour" },
          ...quick,
        },
      })
      onTestFinished(tenure.close)
      const page = tenureConsole(tenure, {
        authorize: ({ headers }) => ({
          keyId: String(headers["x-who"] ?? "Ada"),
          projects: "all",
          role: "admin",
        }),
      })
      const { close, url } = await serve(tenure, { listener: toNodeHandler(page) })
      onTestFinished(close)
      const headers = { "x-who": "busy", "sec-fetch-site": "same-origin" }
      for (let count = 0; count < 43; count++) {
        await (await fetch(`${url}/console/api/v2/identity`, { headers })).text()
      }
      const { faults, page: overview } = await openWith(browser, { url }, "#/", "", {})
      await overview.getByRole("row", { name: /^busy .* 3$/ }).waitFor()
      await overview.getByRole("img", { name: "Requests beyond limits: 3 refused" }).waitFor()
      await overview.getByText("As a table").click()
      await overview.getByRole("columnheader", { name: "Minute (UTC)" }).waitFor()
      expect(await findingsOf(overview)).toEqual([])
      expect(faults).toEqual([])
      await overview.context().close()
    })

    it(
      "can be used by keyboard alone",
      at(`${shop}/members/1001`, async (page) => {
        const focused = () => page.evaluate("document.activeElement.textContent")
        await button(page, "Extend").focus()
        await page.keyboard.press("Enter")
        await page.getByRole("dialog").waitFor()
        await expect.poll(() => page.evaluate("document.activeElement.name")).toBe("end")
        await page.keyboard.press("Escape")
        await page.locator("dialog").waitFor({ state: "detached" })
        await expect.poll(focused).toBe("Extend")
        await page.keyboard.press("g")
        await page.keyboard.press("e")
        await heading(page, "shop Events").waitFor()
        await expect.poll(focused).toBe("shop Events")
        await page.keyboard.press("/")
        await page.getByRole("combobox", { name: /^Search/ }).waitFor()
        await page.keyboard.type("1055")
        await page.getByRole("option", { name: "1055" }).waitFor()
        await page.keyboard.press("Enter")
        await heading(page, "1055").waitFor()
        await page.keyboard.press("Control+k")
        await page.getByRole("combobox", { name: /^Search/ }).waitFor()
        await page.keyboard.type("api")
        await page.keyboard.press("Enter")
        await heading(page, "API keys").waitFor()
        await page.keyboard.press("g")
        await page.keyboard.press("p")
        await heading(page, "Projects").waitFor()
        await page.locator("main").getByRole("link", { name: "shop" }).waitFor()
        for (const key of ["j", "j", "j", "k", "j", "Enter"]) await page.keyboard.press(key)
        await heading(page, "pool Overview").waitFor()
        await goTo(`${shop}/webhooks/${broken}`)
        await button(page, "Show request and responses").focus()
        await page.keyboard.press("Enter")
        await says(page, "The queue is full.")
        await page.keyboard.press("Tab")
        expect(await focused()).toContain(`POST ${server.receiver}/broken`)
      }),
    )

    it("keeps the colours that the user has chosen, and nothing else", async () => {
      const { faults, page } = await open("#/projects")
      await page.locator(".menu summary").click()
      await page.getByLabel("Colours").selectOption("dark")
      await page.reload()
      await heading(page, "Projects").waitFor()
      expect(await page.evaluate("Object.entries(localStorage)")).toEqual([
        ["tenure-console-scheme", "dark"],
      ])
      expect(await page.evaluate("getComputedStyle(document.body).colorScheme")).toBe("dark")
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("asks less than 30 times a minute while it is left open, and not at all while hidden", async () => {
      const { faults, page } = await open("#/")
      await page.clock.install()
      const { asked, underWay } = countRequests(page)
      await page.reload()
      await says(page, "Answer time of webhooks")
      const settle = async () => {
        await expect.poll(() => page.getByText("Loading…").count()).toBe(0)
        await expect.poll(() => underWay()).toBe(0)
      }
      /** Returns how many requests a minute has. */
      const minute = async (): Promise<number> => {
        await settle()
        const before = asked()
        for (let step = 0; step < 12; step++) {
          await page.clock.runFor(5000)
          await settle()
        }
        return asked() - before
      }
      const show = (isHidden: boolean) =>
        page.evaluate(
          `Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
           document.dispatchEvent(new Event("visibilitychange"))`,
        )
      const shown = await minute()
      expect(shown).toBeGreaterThan(5)
      expect(shown).toBeLessThan(30)
      await show(true)
      expect(await minute()).toBe(0)
      await show(false)
      expect(await minute()).toBeGreaterThan(5)
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("moves the clock of a development server that has one", async () => {
      const machine = await startMachine([1, 10, 10, 80])
      onTestFinished(machine.close)
      const place = `#/projects/${machine.project}`
      const { faults, page } = await openWith(browser, machine, place, machine.token, {})
      const figure = (name: string) => page.locator(".figure", { hasText: name }).locator("dd")
      await expect.poll(() => figure("Expired").textContent()).toBe("0")
      const slider = page.getByRole("slider")
      await slider.waitFor()
      expect(await findingsOf(page)).toEqual([])
      await button(page, "Next event").click()
      // Until this move ends, the server refuses another.
      await expect.poll(() => figure("Expired").textContent()).toBe("1")
      await slider.fill(String(machine.start + 20 * 86_400_000))
      await expect.poll(() => figure("Expired").textContent()).toBe("3")
      await figure("Active").getByText("1").waitFor()
      await page.getByRole("link", { name: "Events" }).click()
      await says(page, "membership.expired")
      expect(faults.filter((fault) => fault !== `${machine.url}/dev/clock`)).toEqual([])
      await page.context().close()
    })

    it(
      "shows what clients have sent as text",
      at("#/", async (page) => {
        const { client, receiver } = server
        const member = { project_id: evil, user_id: "7003" }
        await client.projects.create({ project_id: evil })
        const { data: hook } = await client.webhooks.create({
          project_id: evil,
          url: `${receiver}/broken?${encodeURIComponent(evil)}`,
        })
        await client.memberships.grant({
          ...member,
          end_date: "2030-01-01T00:00:00.000Z",
          reason: evil,
        })
        const { data: event } = await client.events.publish({
          project_id: evil,
          type: "payment.completed",
          data: { [evil]: evil },
        })
        const { data: key } = await client.apiKeys.issue({
          projects: [evil],
          role: "operator",
          name: evil,
        })
        const project = `#/projects/${encodeURIComponent(evil)}`
        const places = [
          "#/projects",
          "#/keys",
          `#/${encodeURIComponent(evil)}/${encodeURIComponent(evil)}`,
          `${project}/members`,
          `${project}/members/7003`,
          `${project}/members/${encodeURIComponent(evil)}`,
          `${project}/webhooks`,
          `${project}/webhooks/${hook.id}`,
          `${project}/events`,
          `${project}/events/${event.id}`,
          `${project}/audit`,
          "#/audit",
        ]
        for (const place of places) {
          await goTo(place)
          await page.getByRole("heading", { level: 1 }).waitFor()
          await expect.poll(() => page.getByText("Loading…").count()).toBe(0)
          const hidden = page
            .getByRole("button", { name: "Show data" })
            .or(page.getByRole("button", { name: "Data", expanded: false }))
          const shown = page.getByText("onerror")
          // What is hidden at first may come later than the rest of the page.
          const showAll = async () => {
            while ((await hidden.count()) > 0) await hidden.first().click()
            return shown.count()
          }
          await expect.poll(showAll).toBeGreaterThan(0)
          expect(await page.locator("img, main script").count(), place).toBe(0)
          expect(await page.evaluate("window.hacked"), place).toBeUndefined()
        }
        await client.apiKeys.revoke({ key_id: key.id })
        await client.projects.delete({ project_id: evil })
      }),
    )

    it("says that the server does not answer, and goes on when it does", async () => {
      const { page } = await open("#/projects")
      await page.clock.install()
      await page.reload()
      await page.locator("main").getByRole("link", { name: "gym" }).waitFor()
      await server.die()
      // Nobody does anything: the page notices by itself.
      await page.clock.fastForward(15_000)
      await says(page, "The server does not answer.")
      await page.getByRole("link", { name: "API keys" }).click()
      await server.rise()
      await page.clock.fastForward(15_000)
      await says(page, "seed admin (yours)")
      expect(await page.getByText("The server does not answer.").count()).toBe(0)
      await page.context().close()
    })
  },
)
