/**
 * The console in Chromium, at the bundled server: what users do there.
 * @rerun
 */

import { MembershipStore, Outbox, type StorePorts, StoreUnavailable } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect, it } from "vitest"
import {
  button,
  choose,
  confirm,
  countRequests,
  field,
  fill,
  findingsOf,
  heading,
  inDialog,
  loaded,
  press,
  says,
  useSession,
} from "./pages.ts"
import { addHistory, addTroubles, serveConsole, startMachine, tokens } from "./server.ts"

let broken: string

const { client, goTo, open, server, visit } = useSession(async (started) => {
  broken = await addHistory(started)
  await addTroubles(started)
})

const shop = "#/projects/shop"

/** A distant end date. */
const endDate = 4_070_908_800_000

describe("signing in", () => {
  it("works with a key of an operator, and lasts until signing out", async () => {
    // As hosts redirect that remove the slash.
    const page = await open("", { token: "", expected: /\/console$/ })
    await fill(page, { "API key": "unknown" })
    await press(page, "Sign in")
    await says(page, "This key is not valid or was revoked.")
    await fill(page, { "API key": tokens.client })
    await press(page, "Sign in")
    await says(page, "The console is for the keys of operators and admins.")
    expect(await findingsOf(page)).toEqual([])
    await fill(page, { "API key": tokens.operator })
    await page.keyboard.press("Enter")
    // An operator with one project begins there.
    await heading(page, "shop Overview").waitFor()
    await page.reload()
    await heading(page, "shop Overview").waitFor()
    expect(await page.evaluate("document.cookie")).toBe("")
    expect(await page.evaluate("localStorage.length")).toBe(0)
    await page.goto(`${server().url}/console`)
    await heading(page, "shop Overview").waitFor()
    await page.locator(".menu summary").click()
    await press(page, "Sign out")
    await heading(page, "Sign in to Tenure").waitFor()
  })

  it("shows an operator what operators may do, and says what only admins may see", async () => {
    const page = await open(`${shop}/members/1001`, { token: tokens.operator })
    await button(page, "Set the end").waitFor()
    const nav = page.getByRole("navigation", { name: "Main" })
    expect(await nav.getByRole("link").allTextContents()).toEqual(["Projects", "shop"])
    for (const [place, text] of [
      ["keys", "Only admins may see API keys."],
      ["audit", "Only admins of all projects may see this audit trail."],
    ] as const) {
      await page.goto(`${server().url}/console/#/${place}`)
      await says(page, text)
    }
  })

  it("is asked for again when the key is revoked", async () => {
    const { data } = await client().apiKeys.issue({ projects: "all", role: "admin" })
    const page = await open("#/projects", { token: String(data.token) })
    // The projects are the last that the screen asks for: until they are there, it still uses the key.
    await page.locator("main").getByRole("link", { name: "gym" }).waitFor()
    await client().apiKeys.revoke({ key_id: data.id })
    await page.getByRole("link", { name: "API keys" }).click()
    await heading(page, "Sign in to Tenure").waitFor()
  })
})

it("creates a project, and deletes it when its id is repeated", () =>
  visit("#/projects", async (page) => {
    await press(page, "New project")
    await fill(page, { Id: "club" })
    await confirm(page, "Create", "The project club is there.")
    await page.locator("main").getByRole("link", { name: "club" }).click()
    await page.getByRole("link", { name: "Settings" }).click()
    await press(page, "Delete the project")
    await fill(page, { "The id of the project": "other" })
    await confirm(page, "Delete the project", "That is not the id of the project.")
    await fill(page, { "The id of the project": "club" })
    await confirm(page, "Delete the project", "The project club was deleted.")
    await heading(page, "Projects").waitFor()
    await expect.poll(() => page.getByRole("link", { name: "club" }).count()).toBe(0)
  }))

it("lists members by state and by page, and finds one", () =>
  visit(`${shop}/members`, async (page) => {
    const first = page.locator("main tbody tr").first()
    await press(page, "Next")
    await says(page, "1130")
    await press(page, "Previous")
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
  }))

it("grants, extends, sets and ends a membership, and shows its history", () =>
  visit(`${shop}/members`, async (page) => {
    const listed = (hasText: RegExp) => page.getByRole("listitem").filter({ hasText }).waitFor()
    await press(page, "Grant a membership")
    await page.getByLabel("User", { exact: true }).fill("7001")
    await choose(page, "Exact time")
    await field(page, "end").fill("2030-01-31")
    await fill(page, { "Time UTC": "10:00:00", Reason: "A friend" })
    await inDialog(page, "Grant").click()
    await heading(page, "7001").waitFor()
    await says(page, "A friend")

    await press(page, "Extend")
    await choose(page, "Exact time")
    await field(page, "end").fill("2030-02-02")
    await says(page, /^2030-02-02 10:00:00 UTC, in \d+ (?:years|months)$/)
    await choose(page, "+1 month")
    // The last day in a shorter month.
    const would = "It would last until 2030-02-28 10:00:00 UTC, in place of 2030-01-31 10:00:00."
    await confirm(page, "Dry run", would)
    await confirm(page, "Extend", "The membership lasts until 2030-02-28 10:00:00 UTC.")
    await listed(/^Extended/)

    await press(page, "Edit")
    await fill(page, { Name: "plan", Text: "gold <b>" })
    await inDialog(page, "Save").click()
    await page.locator("aside").getByText("gold <b>").waitFor()
    await press(page, "Edit")
    await fill(page, { "Text of plan": "" })
    await confirm(page, "Save", "None is kept.")

    await press(page, "Set the end")
    await field(page, "through").fill("2020-01-01")
    await inDialog(page, "Set the end").click()
    await page.locator(".state", { hasText: "expired" }).waitFor()

    await press(page, "End", "End the membership")
    await says(page, "no member")
    expect(await page.getByText("Metadata changed").count()).toBe(2)
    await listed(/^Ended/)
    await button(page, "Grant").waitFor()
  }))

it("does not extend what somebody else has changed meanwhile", () =>
  visit(`${shop}/members/1060`, async (page) => {
    const member = { project_id: "shop", user_id: "1060" }
    const end_date = "2031-01-01T00:00:00.000Z"
    await press(page, "Extend")
    await choose(page, "+1 year")
    await client().memberships.grant({ ...member, end_date })
    await inDialog(page, "Extend").click()
    await page.getByRole("alert").waitFor()
    expect((await client().memberships.get(member)).data).toMatchObject({ end_date })
  }))

it("has a grace, and says in red who would expire without it", () =>
  visit("#/projects", async (page) => {
    const project_id = "lenient"
    const end_date = new Date(Date.now() - 3_600_000).toISOString()
    await client().projects.create({ project_id })
    await client().memberships.grant({ project_id, user_id: "7004", end_date })
    await goTo("#/projects/lenient/settings")
    await press(page, "Set the grace")
    expect(await inDialog(page, "Save").isDisabled()).toBe(true)
    await field(page, "grace").fill("P1M")
    await confirm(page, "Dry run", "grace must be")
    await field(page, "grace").fill("p7d")
    const gain = "1 membership would be active again, 0 memberships would expire."
    await confirm(page, "Dry run", gain)
    const inRed = page.locator(".checked .bad")
    expect(await inRed.allTextContents()).toEqual([])
    await confirm(page, "Save", "The grace is P7D.")
    await page.getByText("P7D", { exact: true }).waitFor()

    await goTo("#/projects/lenient")
    await page.locator(".figure", { hasText: "Overdue" }).getByRole("link", { name: "1" }).click()
    const until = new Date(Date.parse(end_date) + 7 * 86_400_000)
    const shown = `in grace until ${until.toISOString().slice(0, 16).replace("T", " ")}`
    await page.getByRole("row", { name: `7004 active ${shown}` }).waitFor()
    await page.getByRole("button", { name: /^Ends in 7 days ?1$/ }).waitFor()
    await page.getByRole("link", { name: "7004" }).click()
    await page.locator(".sub").getByText(shown).waitFor()
    await page.locator(".sub").getByText("ended ").waitFor()
    const late = { project_id, user_id: "7005" }
    // The server announces no end from before its start.
    await client().memberships.grant({ ...late, end_date: new Date().toISOString() })
    const announced = async () =>
      (await client().memberships.history(late)).data.map(({ action }) => action)
    await expect.poll(announced).toContain("overdue")
    await goTo("#/projects/lenient/members/7005")
    await page.locator("ol").getByText("Overdue").waitFor()

    await goTo("#/projects/lenient/settings")
    await press(page, "Set the grace")
    await field(page, "grace").fill("")
    const loss = "0 memberships would be active again, 2 memberships would expire."
    await confirm(page, "Dry run", loss)
    expect(await inRed.allTextContents()).toEqual(["2 memberships would expire.", "2", "2"])
    await confirm(page, "Save", "The grace is none.")
    await goTo("#/projects/lenient/members")
    await page.getByRole("button", { name: /^Expired ?2$/ }).waitFor()
    expect(await page.getByRole("button", { name: /^Overdue/ }).count()).toBe(0)
    // Others go through the list of projects.
    await client().projects.delete({ project_id })
  }))

it("pauses a membership, lists it, and resumes it with the time that was left", () =>
  visit("#/projects", async (page) => {
    const project_id = "resting"
    const member = { project_id, user_id: "7006" }
    const place = "#/projects/resting/members"
    const { memberships } = client()
    const sub = page.locator(".sub")
    const paused = sub.locator(".state", { hasText: "paused" })
    const end = Date.now() + 100 * 86_400_000
    const lastDay = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10)
    const nextDay = new Date(Date.parse(lastDay) + 86_400_000).toISOString().slice(0, 10)
    await client().projects.create({ project_id })
    await memberships.grant({ ...member, end_date: new Date(end).toISOString() })
    await memberships.grant({ project_id, user_id: "7007", end_date: "2020-01-01T00:00:00.000Z" })
    await goTo(`${place}/7007`)
    await button(page, "Extend").waitFor()
    expect(await button(page, "Pause").count()).toBe(0)
    await goTo(place)
    await page.getByRole("button", { name: /^Expired ?1$/ }).waitFor()
    expect(await page.getByRole("button", { name: /^Paused/ }).count()).toBe(0)

    await goTo(`${place}/7006`)
    expect(await button(page, "Resume").count()).toBe(0)
    await press(page, "Pause")
    await field(page, "through").fill("2099-01-01")
    await confirm(page, "Pause", "until must be at most two years ahead")
    await field(page, "through").fill(lastDay)
    await fill(page, { Reason: "An operation" })
    await confirm(page, "Pause", "The membership is paused.")
    await paused.waitFor()
    await sub.getByText(`until ${nextDay} 00:00`).waitFor()
    await sub.getByText("3 months left after the pause").waitFor()
    await page
      .getByRole("listitem")
      .filter({ hasText: /^Paused.*An operation/ })
      .waitFor()
    expect(await button(page, "Pause").count()).toBe(0)
    await press(page, "Extend")
    await field(page, "through").fill("2090-01-31")
    const would = "through 31 Jan 2090 (until 2090-02-01 00:00:00 UTC plus the pause)"
    await confirm(page, "Dry run", would)
    await page.keyboard.press("Escape")

    await goTo("#/projects/resting/events")
    const event = page.getByRole("row", { name: "membership.paused" })
    await event.waitFor()
    expect(await event.textContent()).not.toContain("until")

    await goTo("#/projects/resting")
    await page.locator(".figure", { hasText: "Paused" }).getByRole("link", { name: "1" }).click()
    await page.getByRole("button", { name: /^Paused ?1$/, pressed: true }).waitFor()
    await page
      .getByRole("row", { name: /^7006 paused until .* 3 months left after the pause$/ })
      .waitFor()
    await page.getByRole("link", { name: "7006" }).click()
    await press(page, "Resume")
    await fill(page, { Reason: "Well again" })
    await confirm(page, "Resume", "The membership is resumed.")
    await sub.locator(".state", { hasText: "active" }).waitFor()
    await page
      .getByRole("listitem")
      .filter({ hasText: /^Resumed.*Well again/ })
      .waitFor()
    const { end_date } = (await memberships.get(member)).data
    expect(Date.parse(end_date ?? "")).toBeGreaterThan(end)

    await press(page, "Pause")
    await choose(page, "Until resumed")
    await confirm(page, "Pause", "The membership is paused.")
    await paused.waitFor()
    expect(await sub.textContent()).toMatch(/since .*end date/)
    expect(await sub.textContent()).not.toContain("until")
    await press(page, "Resume")
    await memberships.resume(member)
    await inDialog(page, "Resume").click()
    await page.getByRole("alert").waitFor()
    await page.keyboard.press("Escape")
    await goTo(`${place}?paused`)
    await says(page, "No membership is paused.")
    await client().projects.delete({ project_id })
  }))

it("has days in the project's time zone, and months that count by them", () =>
  visit("#/projects", async (page) => {
    const project_id = "zoned"
    const member = { project_id, user_id: "7003" }
    await client().projects.create({ project_id })
    await goTo("#/projects/zoned/settings")
    await press(page, "Set the time zone")
    await field(page, "zone").fill("Mars/Olympus")
    await confirm(page, "Save", "time_zone must be")
    await field(page, "zone").fill("Europe/Berlin")
    await confirm(page, "Save", "The time zone is Europe/Berlin.")
    await goTo("#/projects/zoned/members")
    await button(page, "Grant a membership").first().click()
    await page.getByLabel("User", { exact: true }).fill(member.user_id)
    await page.getByLabel("Last day Europe/Berlin").fill("2030-01-30")
    await says(page, "through 30 Jan 2030")
    await inDialog(page, "Grant").click()
    await heading(page, member.user_id).waitFor()
    await page.locator(".sub").getByText("through 30 Jan 2030 in Europe/Berlin").waitFor()
    await press(page, "Extend")
    await choose(page, "+1 month")
    await says(page, "By the calendar of Europe/Berlin.")
    const next = "through 28 Feb 2030 (until 2030-02-28 23:00:00 UTC)"
    await confirm(page, "Dry run", `It would last ${next}, in place of 2030-01-30 23:00:00.`)
    await confirm(page, "Extend", `The membership lasts ${next}.`)
    expect((await client().memberships.get(member)).data).toMatchObject({ kept_day: 30 })
    await press(page, "Set the end")
    await field(page, "through").fill("2030-03-31")
    await confirm(page, "Set the end", "The end is changed.")
    await goTo("#/projects/zoned/members")
    await page.getByRole("row", { name: /through 31 Mar 2030/ }).waitFor()
    await goTo("#/projects/zoned")
    await page.getByLabel("What if all were extended").selectOption("through a day")
    await page.getByLabel("Last day").fill("2031-01-31")
    await says(page, "Nothing is changed.")
    await press(page, "Extend all")
    await field(page, "through").fill("2030-06-30")
    await confirm(page, "Dry run", "0 would end earlier than now")
    await confirm(page, "Extend all", "The new end was set: 1 membership.")
    expect((await client().memberships.get(member)).data).toMatchObject({
      end_date: "2030-06-30T22:00:00.000Z",
      through: "2030-06-30",
    })
    await client().projects.delete({ project_id })
  }))

it("grants memberships for life, lists them last, and says how many a date for all would end", () =>
  visit("#/projects/empty/members", async (page) => {
    const project_id = "empty"
    const { memberships } = client()
    await memberships.grant({ project_id, user_id: "2", end_date: endDate })
    await page.reload()
    await press(page, "Grant a membership")
    await page.getByLabel("User", { exact: true }).fill("1")
    await choose(page, "For life")
    await inDialog(page, "Grant").click()
    await heading(page, "1").waitFor()
    await page.getByText("for life", { exact: true }).first().waitFor()
    expect(await button(page, "Extend").count()).toBe(0)
    expect((await memberships.get({ project_id, user_id: "1" })).data.end_date).toBeNull()
    await goTo("#/projects/empty/members")
    await press(page, "Grant a membership")
    await page.getByLabel("User", { exact: true }).fill("1")
    await field(page, "through").fill("2030-01-31")
    await page.getByLabel("Only if there is no membership").check()
    await confirm(page, "Grant", "1 has a membership already: nothing was changed.")
    expect((await memberships.get({ project_id, user_id: "1" })).data.end_date).toBeNull()
    await goTo("#/projects/empty/members")
    await page.getByRole("row", { name: /for life/ }).waitFor()
    const users = page.locator("main tbody td:first-child")
    expect(await users.allTextContents()).toEqual(["2", "1"])
    await goTo("#/projects/empty")
    await press(page, "Extend all")
    await field(page, "through").fill("2050-01-01")
    await confirm(page, "Dry run", "1 membership for life would end.")
    await page.keyboard.press("Escape")
    for (const user_id of ["1", "2"]) await memberships.end({ project_id, user_id })
  }))

it("extends all members after a dry run of the same date", () =>
  visit("#/projects/gym", async (page) => {
    const member = { project_id: "gym", user_id: "7002" }
    await client().memberships.grant({ ...member, end_date: "2090-01-01T00:00:00.000Z" })
    await page.getByLabel("Days", { exact: true }).fill("3")
    await says(page, "with the extension")
    await says(page, "Nothing is changed.")
    await press(page, "Extend all")
    expect(await inDialog(page, "Extend all").isDisabled()).toBe(true)
    await choose(page, "Exact time")
    await field(page, "end").fill("2050-01-01")
    await confirm(page, "Dry run", "1 would end earlier than now")
    await field(page, "end").fill("2051-01-01")
    expect(await inDialog(page, "Extend all").isDisabled()).toBe(true)
    await inDialog(page, "Dry run").click()
    await confirm(page, "Extend all", "The new end was set: 1 membership.")
    await says(page, "2051-01-01 00:00")
    await press(page, "Add days")
    await field(page, "by").fill("P3D")
    await confirm(page, "Dry run", "0 would end earlier than now")
    await confirm(page, "Add to all", "later by P3D")
    await button(page, "Undo").first().click()
    await confirm(page, "Dry run", "1 would end earlier than now")
    await confirm(page, "Undo it", "undone")
  }))

it("creates, pings, rotates, replays and deletes a webhook", () =>
  visit("#/projects/gym/webhooks", async (page) => {
    const url = `${server().receiver}/new`
    const secret = page.getByRole("dialog").locator("code")
    const ping = page.getByRole("row", { name: "webhook.ping" })
    await press(page, "New webhook")
    await fill(page, { URL: url, "Types of events": "payment.completed, webhook.ping" })
    await inDialog(page, "Create").click()
    const first = await secret.textContent()
    expect(first).toMatch(/^whsec_/)
    await inDialog(page, "Close").click()
    await page.getByRole("link", { name: url.replace("http://", "") }).click()

    expect(await page.getByText("whsec_").count()).toBe(0)
    await press(page, "Show the secret")
    await says(page, first ?? "")

    await press(page, "Ping", "Ping")
    const states = async () => {
      await press(page, "Refresh")
      return ping.allTextContents()
    }
    await expect.poll(states).toEqual([expect.stringContaining("delivered")])

    await press(page, "Rotate the secret", "Rotate the secret")
    await secret.waitFor()
    expect(await secret.textContent()).not.toBe(first)
    await page.keyboard.press("Escape")

    await press(page, "Replay")
    await fill(page, { Since: "2026-01-01" })
    await page.getByLabel("Which").selectOption("failed")
    await confirm(page, "Dry run", "Would be sent again: 0 events.")
    await confirm(page, "Replay", "Sent again: 0 events.")

    await ping.getByRole("button").click()
    await press(page, "Send again", "Send again")
    await says(page, "The event is sent again.")

    await press(page, "Edit")
    await fill(page, { Description: "The gym's door", "Attempts a second": "500" })
    await page.getByLabel("Send a member's events one by one").check()
    await confirm(page, "Save", "The webhook was changed.")
    for (const text of ["The gym's door", "at most 500", "a member's events one by one"])
      await says(page, text)
    await press(page, "Disable", "Disable")
    await says(page, "The webhook is disabled.")
    await page.locator(".state", { hasText: "disabled" }).waitFor()
    await says(page, "by request")

    await press(page, "Delete", "Delete the webhook")
    await says(page, "There are no webhooks yet")
  }))

it("enables a webhook whose receiver said that it is gone", () =>
  visit("#/", async (page) => {
    const project_id = "gym"
    const { webhooks } = client()
    const { data } = await webhooks.create({ project_id, url: `${server().receiver}/gone` })
    const webhook = { project_id, webhook_id: data.id }
    await webhooks.ping(webhook)
    const found = async () => (await webhooks.get(webhook)).data
    await expect.poll(found).toMatchObject({ disabled_at: expect.any(String) })
    await goTo(`#/projects/gym/webhooks/${data.id}`)
    await page.locator(".state", { hasText: "disabled" }).waitFor()
    await press(page, "Enable", "Enable")
    await says(page, "The webhook is enabled.")
    await button(page, "Enable").waitFor({ state: "detached" })
    await webhooks.delete(webhook)
  }))

it("shows events as they come, of the types that are asked for", () =>
  visit("#/projects/gym/events", async (page) => {
    const types = ["door.closed", "door.opened"]
    await page.getByRole("searchbox").fill("door.opened")
    const shown = async () => {
      for (const type of types)
        await client().events.publish({ project_id: "gym", type, data: { secret: type } })
      const [closed, opened] = types.map((name) => page.getByRole("row", { name }).count())
      return { isOpened: (await opened) !== 0, closed: await closed }
    }
    // What was shown before the choice gives way a moment later.
    await expect.poll(shown).toEqual({ isOpened: true, closed: 0 })
    expect(await page.getByText('"secret"').count()).toBe(0)
    await press(page, "Live: pause")
    await button(page, "Paused: go on").waitFor()
  }))

it("issues a key, shows its token once, and revokes it", () =>
  visit("#/keys", async (page) => {
    await press(page, "Issue a key")
    await fill(page, { Name: "nightly import" })
    await page.getByLabel("Role").selectOption("operator")
    await fill(page, { Projects: "shop, gym" })
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
  }))

it("names in the audit trail whoever was shown a secret, data or a request", () =>
  visit("#/projects/gym/events", async (page) => {
    const { events, projects, webhooks } = client()
    const project_id = "gym"
    const url = `${server().receiver}/own`
    const { data: hook } = await webhooks.create({ project_id, url })
    const data = { door: "north" }
    const { data: event } = await events.publish({ project_id, type: "door.locked", data })
    const latest = async () => {
      const { data: rows } = await projects.audit({ project_id, limit: 3 })
      return rows.map(({ action, subject }) => [action, subject])
    }
    const row = page.getByRole("row", { name: /door.locked/ })
    await row.waitFor()
    await goTo(`#/projects/gym/webhooks/${hook.id}`)
    await row.waitFor()
    expect((await latest())[0]).toEqual(["webhook_created", hook.id])
    await press(page, "Show the secret")
    await says(page, hook.secret)
    await row.getByRole("button").click()
    await press(page, "Show request and responses")
    await says(page, `POST ${url}`)
    await goTo(`#/projects/gym/events/${event.id}`)
    await press(page, "Show data")
    await says(page, '"north"')
    const shownData = ["data_shown", event.id]
    expect(await latest()).toEqual([shownData, shownData, ["secret_shown", hook.id]])
    await goTo("#/projects/gym/audit")
    await page.getByTitle(event.id).first().click()
    await heading(page, "door.locked").waitFor()
    await webhooks.delete({ project_id, webhook_id: hook.id })
  }))

it("says who changed what, and leads there", () =>
  visit(`${shop}/audit`, async (page) => {
    const row = page.locator("tr", { hasText: "Invoice 2026-1107 paid" })
    await row.getByText("Extended", { exact: true }).waitFor()
    await row.getByRole("link", { name: "1055" }).click()
    await heading(page, "1055").waitFor()
    await page.getByRole("link", { name: "Audit", exact: true }).first().click()
    const created = page.getByRole("row", { name: /Project created/ })
    await created.first().waitFor()
    await page.locator("main").getByRole("link", { name: "shop" }).click()
    await heading(page, "shop Overview").waitFor()
  }))

it("finds changes by member, kind and key, and leaves out announcements", () =>
  visit(`${shop}/audit`, async (page) => {
    const rows = page.locator("main tbody tr")
    const deeds = () => page.locator("main td.deed").allTextContents()
    await rows.first().waitFor()
    await page.getByLabel("Changes to the member with the id").fill("1055")
    await page.getByLabel("Kind of change").selectOption("extended")
    await expect.poll(deeds).toEqual(["Extended"])
    await says(page, "Invoice 2026-1107 paid")
    await page.getByLabel("Changes by the key with the id").fill("nobody")
    await says(page, "There is no such change.")
    await page.getByLabel("Changes by the key with the id").fill("")
    await rows.first().waitFor()
    const announcements = button(page, "Announcements")
    expect(await announcements.getAttribute("aria-pressed")).toBe("true")
    await page.getByLabel("Kind of change").selectOption("")
    await announcements.click()
    await expect.poll(deeds).not.toContain("Announced to end")
    await page.getByLabel("Changes since").fill("2000-01-01 12:30")
    await page.getByLabel("Changes before").fill("2000-01-02")
    await says(page, "There is no such change.")
    await page.getByLabel("Changes before").fill("")
    await rows.first().waitFor()
    await page.getByLabel("Changes by the request with the id").fill("nothing")
    await says(page, "There is no such change.")
    await page.getByLabel("Changes since").fill("yesterday")
    await says(page, "since must be")
    await page.getByLabel("Changes since").fill("")
    await page.getByLabel("Changes to the member with the id").fill("a b")
    await says(page, "user_id must be")
  }))

it("sends an event again from its page", () =>
  visit(`${shop}/events`, async (page) => {
    const payment = page.getByRole("row", { name: /payment/ })
    await payment.getByRole("link").first().click()
    await button(page, "Send again").first().click()
    await confirm(page, "Send again", "The event is sent again.")
  }))

it("shows those whom the host lets only read what there is, and no more", async () => {
  // They list, sort and copy.
  const harmless = /^(Refresh|Active.*|Ends in 7 days.*|Expired.*|All.*|User.*|Ends \(UTC\).*|)$/
  const { opening, tenure } = await serveConsole({}, { role: "operator", readOnly: true })
  await tenure.memberships.createProject("p")
  await tenure.memberships.grant({ projectId: "p", userId: "1", endDate })
  const page = await open("#/projects/p/members/1", opening)
  await says(page, "operator, read-only")
  await says(page, "Granted")
  for (const place of ["members/1", "members", "webhooks", "settings", ""]) {
    await page.goto(`${opening.url}/console/#/projects/p/${place}`)
    await page.reload()
    await page.getByRole("heading", { level: 1 }).waitFor()
    await loaded(page)
    const buttons = await page.locator("main").getByRole("button").allTextContents()
    expect(buttons.filter((one) => !harmless.test(one.trim()))).toEqual([])
  }
  expect(await button(page, "Sign out").count()).toBe(0)
})

it("says that the database does not answer, and shows nothing as if it were known", async () => {
  let isAway = false
  const unless = <A>(effect: Effect.Effect<A, StoreUnavailable>) =>
    Effect.suspend(() => (isAway ? Effect.fail(new StoreUnavailable({ cause: "away" })) : effect))
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
  const { opening, tenure } = await serveConsole({ stores: Layer.provideMerge(lossy, memory()) })
  await tenure.memberships.createProject("p")

  isAway = true
  const page = await open("#/", opening)
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
})

const perKey = { limit: 40, window: "1 hour" } as const

it("tells of keys that are missing, and of those that are suspended", async () => {
  const stores = Layer.succeedContext(
    await Effect.runPromise(Effect.provide(Effect.context<StorePorts>(), memory())),
  )
  const projectId = "p"
  const encryption = { current: "key-of-2025", keys: { "key-of-2025": new Uint8Array(32) } }
  const { tenure } = await serveConsole({ stores, webhooks: { encryption } })
  await tenure.memberships.createProject(projectId)
  await tenure.webhooks.create({ projectId, url: "https://receiver.example/" })
  await tenure.close()
  const { ask, opening } = await serveConsole({
    stores,
    webhooks: { missingKeys: "allow" },
    rateLimits: { perKey, suspension: { refusals: 2 } },
  })
  await ask(45)
  const page = await open("#/", opening)
  const needs = page.locator(".needs li")
  await needs.filter({ hasText: "key-of-2025" }).waitFor()
  await needs.filter({ hasText: "busy" }).getByRole("link", { name: "Open" }).waitFor()
  expect(await findingsOf(page)).toEqual([])
})

it("shows what was delivered, and to whom requests were refused", async () => {
  const { ask, opening } = await serveConsole({ rateLimits: { perKey } })
  await ask(43)
  const page = await open("#/", opening)
  await page.getByRole("row", { name: /^busy .* 3$/ }).waitFor()
  await page.getByRole("img", { name: "Requests beyond limits: 3 refused" }).waitFor()
  await page.getByText("As a table").click()
  await page.getByRole("columnheader", { name: "Minute (UTC)" }).waitFor()
  expect(await findingsOf(page)).toEqual([])
})

it("says when changes of a membership are not kept any more", async () => {
  const { opening, tenure } = await serveConsole({ stores: memory({ history: 2 }) })
  const projectId = "p"
  await tenure.memberships.createProject(projectId)
  for (const userId of ["1", "2", "3"])
    await tenure.memberships.grant({ projectId, userId, endDate })
  await tenure.memberships.extend({ projectId, userId: "3", endDate })

  const page = await open("#/projects/p/members/1", opening)
  await says(page, "The changes of this membership are not kept any more")
  await page.goto(`${opening.url}/console/#/projects/p/members/4`)
  await says(page, "No change of this membership is kept.")
  await page.goto(`${opening.url}/console/#/projects/p/members/3`)
  await says(page, "Granted")
  expect(await page.getByText("not kept").count()).toBe(0)
  await tenure.memberships.extend({ projectId, userId: "3", endDate })
  await page.reload()
  await says(page, "Earlier changes are not kept any more.")
})

it("has nothing to press for a project that does not exist", async () => {
  const page = await open("#/projects/none/members")
  for (const tab of ["Members", "Webhooks", "Events"]) {
    await page.goto(`${server().url}/console/#/projects/none/${tab.toLowerCase()}`)
    await heading(page, `none ${tab}`).waitFor()
    await says(page, "The project was not found.")
    expect(await page.locator("main").locator("button, input, select").count(), tab).toBe(0)
  }
})

it("draws characters that hide, or that turn text around, as JSON writes them", () =>
  visit("#/projects", async (page) => {
    const member = { project_id: "gym", user_id: "8001" }
    const end_date = "2030-01-01T00:00:00.000Z"
    const reason = "paid \u202e0001\u202c\u200b"
    await client().memberships.grant({ ...member, end_date, reason })
    await goTo("#/projects/gym/members/8001")
    await says(page, "paid \\u202e0001\\u202c\\u200b")
    await client().memberships.end(member)
  }))

it("can be used by keyboard alone", () =>
  visit(`${shop}/members/1001`, async (page) => {
    const focused = () => page.evaluate("document.activeElement.textContent")
    const type = async (...keys: ReadonlyArray<string>) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    const search = page.getByRole("combobox", { name: /^Search/ })
    await button(page, "Extend").focus()
    await type("Enter")
    await page.getByRole("dialog").waitFor()
    await expect.poll(() => page.evaluate("document.activeElement.name")).toBe("through")
    await type("Escape")
    await page.locator("dialog").waitFor({ state: "detached" })
    await expect.poll(focused).toBe("Extend")
    await type("g", "e")
    await heading(page, "shop Events").waitFor()
    await expect.poll(focused).toBe("shop Events")
    await type("/")
    await search.waitFor()
    await page.keyboard.type("1055")
    await page.getByRole("option", { name: "1055" }).waitFor()
    await type("Enter")
    await heading(page, "1055").waitFor()
    await type("Control+k")
    await search.waitFor()
    await page.keyboard.type("api")
    await type("Enter")
    await heading(page, "API keys").waitFor()
    await type("g", "p")
    await heading(page, "Projects").waitFor()
    await page.locator("main").getByRole("link", { name: "shop" }).waitFor()
    await type("j", "j", "j", "k", "j", "Enter")
    await heading(page, "pool Overview").waitFor()
    await goTo(`${shop}/webhooks/${broken}`)
    await button(page, "Show request and responses").focus()
    await type("Enter")
    await says(page, "The queue is full.")
    await type("Tab")
    expect(await focused()).toContain(`POST ${server().receiver}/broken`)
  }))

it("asks less than 30 times a minute while it is left open, and not at all while hidden", async () => {
  const page = await open("#/")
  await page.clock.install()
  const { asked, underWay } = countRequests(page)
  await page.reload()
  await says(page, "Answer time of webhooks")
  const settle = async () => {
    await loaded(page)
    await expect.poll(underWay).toBe(0)
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
})

it("moves the clock of a development server that has one", async () => {
  const { after, opening, place } = await startMachine([1, 10, 10, 80])
  const page = await open(place, opening)
  const figure = (name: string) => page.locator(".figure", { hasText: name }).locator("dd")
  const expired = () => figure("Expired").textContent()
  await expect.poll(expired).toBe("0")
  const slider = page.getByRole("slider")
  await slider.waitFor()
  expect(await findingsOf(page)).toEqual([])
  await press(page, "Next event")
  // Until this move ends, the server refuses another.
  await expect.poll(expired).toBe("1")
  await slider.fill(String(after(20)))
  await expect.poll(expired).toBe("3")
  await figure("Active").getByText("1").waitFor()
  await page.getByRole("link", { name: "Events" }).click()
  await says(page, "membership.expired")
})

const evil = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

it("shows what clients have sent as text", () =>
  visit("#/", async (page) => {
    const { apiKeys, events, memberships, projects, webhooks } = client()
    const text = encodeURIComponent(evil)
    const own = { project_id: evil }
    await projects.create(own)
    const url = `${server().receiver}/broken?${text}`
    const { data: hook } = await webhooks.create({ ...own, url })
    const end_date = "2030-01-01T00:00:00.000Z"
    await memberships.grant({ ...own, user_id: "7003", end_date, reason: evil })
    const type = "payment.completed"
    const { data: event } = await events.publish({ ...own, type, data: { [evil]: evil } })
    const role = "operator"
    const { data: key } = await apiKeys.issue({ projects: [evil], role, name: evil })
    const project = `#/projects/${text}`
    const places = [
      "#/projects",
      "#/keys",
      "#/audit",
      `#/${text}/${text}`,
      `${project}/members`,
      `${project}/members/7003`,
      `${project}/members/${text}`,
      `${project}/webhooks`,
      `${project}/webhooks/${hook.id}`,
      `${project}/events`,
      `${project}/events/${event.id}`,
      `${project}/audit`,
    ]
    for (const place of places) {
      await goTo(place)
      await page.getByRole("heading", { level: 1 }).waitFor()
      await loaded(page)
      const hidden = page
        .getByRole("button", { name: "Show data" })
        .or(page.getByRole("button", { name: "Data", expanded: false }))
      // What is hidden at first may come later than the page's rest.
      const showAll = async () => {
        while ((await hidden.count()) > 0) await hidden.first().click()
        return page.getByText("onerror").count()
      }
      await expect.poll(showAll).toBeGreaterThan(0)
      expect(await page.locator("img, main script").count(), place).toBe(0)
      expect(await page.evaluate("window.hacked"), place).toBeUndefined()
    }
    await apiKeys.revoke({ key_id: key.id })
    await projects.delete(own)
  }))

it("says that the server does not answer, and goes on when it does", async () => {
  const page = await open("#/projects")
  await page.clock.install()
  await page.reload()
  await page.locator("main").getByRole("link", { name: "gym" }).waitFor()
  await server().die()
  // Nobody does anything: the page notices by itself.
  await page.clock.fastForward(15_000)
  await says(page, "The server does not answer.")
  await page.getByRole("link", { name: "API keys" }).click()
  await server().rise()
  await page.clock.fastForward(15_000)
  await says(page, "seed admin (yours)")
  expect(await page.getByText("The server does not answer.").count()).toBe(0)
})
