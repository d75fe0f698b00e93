/** Pages of the console that stay open in a browser, while others are busy or the server is away. */

import { createClient } from "@tenure/client"
import type { Page, Route } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { path, reason } from "./chromium.ts"
import {
  type Session,
  button,
  countRequests,
  heading,
  inDialog,
  openWith,
  says,
  startSession,
} from "./pages.ts"
import { startMachine } from "./server.ts"

/** The time on the page. */
const timeOn = async (page: Page): Promise<number> => Number(await page.evaluate("Date.now()"))

describe.skipIf(path === undefined)(
  `open pages of the console in Chromium${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    let session: Session

    beforeAll(async () => {
      session = await startSession(async () => {})
    })

    afterAll(() => session.close())

    it("asks less than 30 times a minute while events of a busy project come in", async () => {
      const { client } = session.server
      const { faults, page } = await session.open("#/projects/gym/events")
      await page.clock.install()
      const { asked, underWay } = countRequests(page)
      await page.reload()
      await button(page, "Live: pause").waitFor()
      const publish = (count: number) =>
        client.events.publish({ project_id: "gym", type: "door.opened", data: { count } })
      const [before, begin] = [asked(), await timeOn(page)]
      let count = 0
      while ((await timeOn(page)) < begin + 60_000) {
        // A question that waits for news ends with the next event.
        const settle = async () => {
          await publish(count++)
          return underWay()
        }
        await expect.poll(settle).toBe(0)
        await page.clock.runFor(500)
      }
      expect(asked() - before).toBeGreaterThan(5)
      expect(asked() - before).toBeLessThan(30)
      // None is missed.
      await publish(count)
      await page.clock.runFor(5000)
      await says(page, new RegExp(`^${count + 1} latest$`))
      expect(faults).toEqual([])
      await page.context().close()
    })

    it("asks no more often after an outage, also if a question was under way when it began", async () => {
      const { page } = await session.open("#/projects")
      await page.clock.install()
      await page.reload()
      await page.locator("main").getByRole("link", { name: "gym" }).waitFor()
      const isProbe = (url: URL) => url.search === "?limit=1"
      let held: Route | undefined
      await page.route(isProbe, (route) => {
        if (held !== undefined) return route.continue()
        held = route
      })
      await page.clock.runFor(15_000)
      await expect.poll(() => held).toBeDefined()
      await page.route("**/api/**/api-keys*", (route) => route.abort())
      await page.getByRole("link", { name: "API keys" }).click()
      await says(page, "The server does not answer.")
      await held?.abort()
      await page.unrouteAll()
      await page.clock.runFor(5000)
      await expect.poll(() => page.getByText("The server does not answer.").count()).toBe(0)
      let probes = 0
      page.on("request", (request) => {
        if (isProbe(new URL(request.url()))) probes++
      })
      const begin = await timeOn(page)
      while ((await timeOn(page)) < begin + 60_000) await page.clock.runFor(1000)
      await expect.poll(() => probes).toBeGreaterThan(2)
      expect(probes).toBeLessThan(6)
      await page.context().close()
    })

    it("changes only the metadata that was edited, and none that others change meanwhile", async () => {
      const { client } = session.server
      const member = { project_id: "gym", user_id: "7100" }
      await client.memberships.grant({ ...member, end_date: "2030-01-01T00:00:00.000Z" })
      const metadata = { note: "two\nlines ", plan: "gold", seat: "A1", until: "May" }
      await client.memberships.update({ ...member, metadata })
      await session.visit("#/projects/gym/members/7100", async (page) => {
        await button(page, "Edit").click()
        await client.memberships.update({ ...member, metadata: { note: "three", seat: "B2" } })
        await page.getByLabel("Text of plan").fill("silver")
        await page.getByLabel("Text of until").fill("")
        await inDialog(page, "Save").click()
        await page.locator("aside").getByText("silver").waitFor()
        expect((await client.memberships.get(member)).data.metadata).toEqual({
          note: "three",
          plan: "silver",
          seat: "B2",
        })
      })
    })

    it("changes only the settings of a webhook that were edited, and shows their names", async () => {
      const { client } = session.server
      const project_id = "gym"
      const { data } = await client.webhooks.create({ project_id, url: "https://old.example/" })
      const webhook = { project_id, webhook_id: data.id }
      await session.visit(`#/projects/gym/webhooks/${data.id}`, async (page) => {
        await button(page, "Edit").click()
        await client.webhooks.update({ ...webhook, url: "https://new.example/" })
        await page.getByLabel("Description").fill("The door")
        await inDialog(page, "Save").click()
        await says(page, "The webhook was changed.")
        expect((await client.webhooks.get(webhook)).data).toMatchObject({
          url: "https://new.example/",
          description: "The door",
        })
      })
      await session.visit("#/projects/gym/audit", async (page) => {
        await page
          .getByRole("row", { name: "Webhook changed" })
          .filter({ hasText: "description" })
          .waitFor()
      })
    })

    it("has as many fields for metadata as there may be texts", async () => {
      const { client } = session.server
      const member = { project_id: "gym", user_id: "7101" }
      await client.memberships.grant({ ...member, end_date: "2030-01-01T00:00:00.000Z" })
      const metadata = Object.fromEntries(
        Array.from({ length: 16 }, (_, index) => [`name-${index}`, "text"]),
      )
      await client.memberships.update({ ...member, metadata })
      await session.visit("#/projects/gym/members/7101", async (page) => {
        await button(page, "Edit").click()
        await page.getByLabel("Text of name-15").fill("another")
        expect(await page.getByPlaceholder("Name").count()).toBe(16)
        await inDialog(page, "Save").click()
        await page.locator("aside").getByText("another").waitFor()
      })
    })

    it("shows members in the order that the list has, and sorts what is there as a whole", async () => {
      const { client } = session.server
      const choir = { project_id: "choir" }
      await client.projects.create(choir)
      const ids = Array.from({ length: 120 }, (_, index) => `singer-${String(index + 1001)}`)
      for (const [index, user_id] of ids.entries()) {
        // Who has a higher id ends earlier.
        const end_date = new Date(Date.UTC(2090, 0, 121 - index)).toISOString()
        await client.memberships.grant({ ...choir, user_id, end_date })
      }
      await session.visit("#/projects/choir/members", async (page) => {
        const shown = () => page.locator("main tbody [data-row]").allTextContents()
        const head = page.locator("main thead th")
        const sorted = () => page.locator("main thead [aria-sort]").allTextContents()
        const sortable = () => head.getByRole("button").count()

        // Active ones can be listed by either.
        await expect.poll(shown).toEqual(ids.toReversed().slice(0, 100))
        expect(await sorted()).toEqual(["Ends (UTC) ↑"])
        await head.getByRole("button", { name: "User" }).click()
        await expect.poll(shown).toEqual(ids.slice(0, 100))
        expect(await sorted()).toEqual(["User ↑"])
        await head.getByRole("button", { name: "Ends" }).click()
        await expect.poll(shown).toEqual(ids.toReversed().slice(0, 100))

        // All of them only by id, on every page.
        await page.getByRole("button", { name: /^All/ }).click()
        await expect.poll(shown).toEqual(ids.slice(0, 100))
        expect(await sorted()).toEqual(["User ↑"])
        expect(await sortable()).toBe(0)
        await button(page, "Next").click()
        await expect.poll(shown).toEqual(ids.slice(100))
        expect(await sorted()).toEqual(["User ↑"])
        expect(await sortable()).toBe(0)

        // A few of them by either again.
        await page.getByRole("searchbox").fill("singer-105")
        const found = ids.filter((id) => id.startsWith("singer-105"))
        await expect.poll(shown).toEqual(found.toReversed())
        expect(await sorted()).toEqual(["Ends (UTC) ↑"])
        await head.getByRole("button", { name: "User" }).click()
        await expect.poll(shown).toEqual(found)
      })
      await client.projects.delete(choir)
    })

    it("says of keys that they have expired by the clock of a development server", async () => {
      const machine = await startMachine([1])
      onTestFinished(machine.close)
      const expires = new Date(machine.start + 10 * 86_400_000).toISOString()
      const client = createClient({ baseUrl: machine.url, token: machine.token })
      await client.apiKeys.issue({
        projects: "all",
        role: "client",
        name: "short",
        expires_at: expires,
      })
      const place = `#/projects/${machine.project}`
      const { page } = await openWith(session.browser, machine, place, machine.token, {})
      const state = page.getByRole("row", { name: /short/ }).locator(".state")
      const slider = page.getByRole("slider")
      await slider.waitFor()
      await page.getByRole("link", { name: "API keys" }).click()
      await expect.poll(() => state.textContent()).toBe("active")
      await page.getByRole("link", { name: machine.project }).click()
      await slider.fill(String(machine.start + 20 * 86_400_000))
      await expect
        .poll(() => page.locator(".figure", { hasText: "Expired" }).locator("dd").textContent())
        .toBe("1")
      await page.getByRole("link", { name: "API keys" }).click()
      await expect.poll(() => state.textContent()).toBe("expired")
      await page.context().close()
    })

    it("keeps the colours that were chosen in the search", async () => {
      const { faults, page } = await session.open("#/projects")
      const isDark = () =>
        page.evaluate("getComputedStyle(document.body).colorScheme").then((one) => one === "dark")
      const take = async (name: string) => {
        await page.keyboard.press("Control+k")
        await page.keyboard.type(name)
        expect(await page.getByRole("combobox", { name: "Search" }).inputValue()).toBe(name)
        await page.getByRole("option", { name }).click()
      }
      const select = page.getByLabel("Colours")
      await heading(page, "Projects").waitFor()
      // Without a `g` before it, also in a page's first second.
      await page.keyboard.press("o")
      await take("Colours: dark")
      await expect.poll(isDark).toBe(true)
      await page.locator(".menu summary").click()
      expect(await select.inputValue()).toBe("dark")
      await page.reload()
      await heading(page, "Projects").waitFor()
      expect(await isDark()).toBe(true)
      await take("Colours: as the system")
      await expect.poll(isDark).toBe(false)
      await page.locator(".menu summary").click()
      expect(await select.inputValue()).toBe("auto")
      expect(await page.evaluate("localStorage.length")).toBe(0)
      expect(faults).toEqual([])
      await page.context().close()
    })
  },
)
