/** Console pages that stay open in Chromium, while others are busy or the server is away. */

import type { Page, Route } from "playwright-core"
import { expect, it } from "vitest"
import { button, countRequests, fill, heading, inDialog, press, says, useSession } from "./pages.ts"
import { startMachine } from "./server.ts"

const { client, open, visit } = useSession()

/** The time on the page. */
const timeOn = async (page: Page): Promise<number> => Number(await page.evaluate("Date.now()"))

it("asks less than 30 times a minute while events of a busy project come in", async () => {
  const page = await open("#/projects/gym/events")
  await page.clock.install()
  const { asked, underWay } = countRequests(page)
  await page.reload()
  await button(page, "Live: pause").waitFor()
  const publish = (count: number) =>
    client().events.publish({ project_id: "gym", type: "door.opened", data: { count } })
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
})

it("asks no more often after an outage, also if a question was under way when it began", async () => {
  const page = await open("#/projects")
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
})

const end_date = "2030-01-01T00:00:00.000Z"

it("changes only the metadata that was edited, and none that others change meanwhile", async () => {
  const { memberships } = client()
  const member = { project_id: "gym", user_id: "7100" }
  await memberships.grant({ ...member, end_date })
  const metadata = { note: "two\nlines ", plan: "gold", seat: "A1", until: "May" }
  await memberships.update({ ...member, metadata })
  await visit("#/projects/gym/members/7100", async (page) => {
    await press(page, "Edit")
    await memberships.update({ ...member, metadata: { note: "three", seat: "B2" } })
    await fill(page, { "Text of plan": "silver", "Text of until": "" })
    await inDialog(page, "Save").click()
    await page.locator("aside").getByText("silver").waitFor()
    const { data } = await memberships.get(member)
    expect(data.metadata).toEqual({ note: "three", plan: "silver", seat: "B2" })
  })
})

it("has as many fields for metadata as there may be texts", async () => {
  const { memberships } = client()
  const member = { project_id: "gym", user_id: "7101" }
  await memberships.grant({ ...member, end_date })
  const names = Array.from({ length: 16 }, (_, index) => [`name-${index}`, "text"] as const)
  await memberships.update({ ...member, metadata: Object.fromEntries(names) })
  await visit("#/projects/gym/members/7101", async (page) => {
    await press(page, "Edit")
    await fill(page, { "Text of name-15": "another" })
    expect(await page.getByPlaceholder("Name").count()).toBe(16)
    await inDialog(page, "Save").click()
    await page.locator("aside").getByText("another").waitFor()
  })
})

it("changes only the settings of a webhook that were edited, and shows their names", async () => {
  const { webhooks } = client()
  const project_id = "gym"
  const { data } = await webhooks.create({ project_id, url: "https://old.example/" })
  const webhook = { project_id, webhook_id: data.id }
  const edited = { url: "https://new.example/", description: "The door" }
  await visit(`#/projects/gym/webhooks/${data.id}`, async (page) => {
    await press(page, "Edit")
    await webhooks.update({ ...webhook, url: edited.url })
    await fill(page, { Description: edited.description })
    await inDialog(page, "Save").click()
    await says(page, "The webhook was changed.")
    expect((await webhooks.get(webhook)).data).toMatchObject(edited)
  })
  await visit("#/projects/gym/audit", async (page) => {
    const row = page.getByRole("row", { name: "Webhook changed" })
    await row.filter({ hasText: "description" }).waitFor()
  })
})

it("shows members in the order that the list has, and sorts what is there as a whole", async () => {
  const choir = { project_id: "choir" }
  await client().projects.create(choir)
  const ids = Array.from({ length: 120 }, (_, index) => `singer-${String(index + 1001)}`)
  const members = ids.map((user_id, index) => {
    // Who has a higher id ends earlier.
    return { user_id, end_date: new Date(Date.UTC(2090, 0, 121 - index)).toISOString() }
  })
  await client().memberships.import({ ...choir, lines: members })
  const byEnd = { shown: ids.toReversed().slice(0, 100), sorted: ["Ends (UTC) ↑"] }
  const byId = { shown: ids.slice(0, 100), sorted: ["User ↑"] }
  const found = ids.filter((id) => id.startsWith("singer-105"))
  await visit("#/projects/choir/members", async (page) => {
    const head = page.locator("main thead th")
    const list = async () => ({
      shown: await page.locator("main tbody [data-row]").allTextContents(),
      sorted: await page.locator("main thead [aria-sort]").allTextContents(),
    })
    const sortable = () => head.getByRole("button").count()
    const sortBy = (name: string) => head.getByRole("button", { name }).click()

    // Active ones can be listed by either.
    await expect.poll(list).toEqual(byEnd)
    await sortBy("User")
    await expect.poll(list).toEqual(byId)
    await sortBy("Ends")
    await expect.poll(list).toEqual(byEnd)

    // All only by id, on every page.
    await page.getByRole("button", { name: /^All/ }).click()
    await expect.poll(list).toEqual(byId)
    expect(await sortable()).toBe(0)
    await press(page, "Next")
    await expect.poll(list).toEqual({ ...byId, shown: ids.slice(100) })
    expect(await sortable()).toBe(0)

    // A few by either again.
    await page.getByRole("searchbox").fill("singer-105")
    await expect.poll(list).toEqual({ ...byEnd, shown: found.toReversed() })
    await sortBy("User")
    await expect.poll(list).toEqual({ ...byId, shown: found })
  })
  await client().projects.delete(choir)
})

it("says of keys that they have expired by the clock of a development server", async () => {
  const machine = await startMachine([1])
  const expires_at = new Date(machine.after(10)).toISOString()
  await machine.client.apiKeys.issue({ projects: "all", role: "client", name: "short", expires_at })
  const page = await open(machine.place, machine.opening)
  const state = page.getByRole("row", { name: /short/ }).locator(".state")
  const slider = page.getByRole("slider")
  await slider.waitFor()
  await page.getByRole("link", { name: "API keys" }).click()
  await expect.poll(() => state.textContent()).toBe("active")
  await page.getByRole("link", { name: "demo" }).click()
  await slider.fill(String(machine.after(20)))
  const expired = page.locator(".figure", { hasText: "Expired" }).locator("dd")
  await expect.poll(() => expired.textContent()).toBe("1")
  await page.getByRole("link", { name: "API keys" }).click()
  await expect.poll(() => state.textContent()).toBe("expired")
})

it("keeps the colours that the user has chosen, by the menu or by the search, and nothing else", async () => {
  const page = await open("#/projects")
  const scheme = () => page.evaluate("getComputedStyle(document.body).colorScheme")
  const kept = () => page.evaluate("Object.entries(localStorage)")
  const select = page.getByLabel("Colours")
  const menu = page.locator(".menu summary")
  const reload = async () => {
    await page.reload()
    await heading(page, "Projects").waitFor()
  }
  const find = async (name: string) => {
    await page.keyboard.press("Control+k")
    await page.keyboard.type(name)
    expect(await page.getByRole("combobox", { name: "Search" }).inputValue()).toBe(name)
    await page.getByRole("option", { name }).click()
  }
  await menu.click()
  await select.selectOption("dark")
  await reload()
  expect(await kept()).toEqual([["tenure-console-scheme", "dark"]])
  expect(await scheme()).toBe("dark")
  await find("Colours: as the system")
  await expect.poll(scheme).not.toBe("dark")
  await menu.click()
  expect(await select.inputValue()).toBe("auto")
  expect(await kept()).toEqual([])
  await reload()
  // Without a `g` before it, also in a page's first second.
  await page.keyboard.press("o")
  await find("Colours: dark")
  await expect.poll(scheme).toBe("dark")
  await menu.click()
  expect(await select.inputValue()).toBe("dark")
  await reload()
  expect(await scheme()).toBe("dark")
})
