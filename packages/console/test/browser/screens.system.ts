/**
 * Every console screen in a browser: full, empty and with webhooks that fail, in light and dark, on a desk and on a
 * phone. With `SCREENSHOTS`, a folder, it leaves pictures there. @rerun
 */

import type { Page } from "playwright-core"
import { expect, it } from "vitest"
import {
  button,
  choose,
  confirm,
  field,
  findingsOf,
  heading,
  loaded,
  press,
  says,
  useSession,
  viewport,
} from "./pages.ts"
import { addHistory, addTroubles } from "./server.ts"

const { SCREENSHOTS } = process.env

/** A phone's width. */
const narrow = 390

let broken: string
let troubled: ReadonlyArray<string>

const { visit } = useSession(async (server) => {
  broken = await addHistory(server)
  troubled = await addTroubles(server)
})

const shop = "#/projects/shop"
const pool = "#/projects/pool"

const payment = (page: Page) => page.getByRole("row", { name: /payment/ })
const failing = (page: Page) => page.locator(".needs li").nth(2).waitFor()

type Screen = readonly [name: string, place: () => string, ready: (page: Page) => Promise<unknown>]

const screens: ReadonlyArray<Screen> = [
  ["overview", () => "#/", (page) => heading(page, "Deliveries a minute").waitFor()],
  ["projects", () => "#/projects", (page) => says(page, "gym")],
  ["members", () => `${pool}/members`, (page) => says(page, "swimmer-12")],
  ["member", () => `${shop}/members/1055`, (page) => says(page, "Invoice 2026-1107 paid")],
  ["webhooks", () => `${shop}/webhooks`, (page) => says(page, "failing")],
  // The latest failure is open.
  ["webhook", () => `${shop}/webhooks/${broken}`, (page) => says(page, "Attempt (UTC)")],
  [
    "delivery",
    () => `${shop}/webhooks/${broken}`,
    async (page) => {
      await press(page, "Show request and responses")
      await says(page, "The queue is full.")
    },
  ],
  [
    "event",
    () => `${shop}/events`,
    async (page) => {
      await payment(page).getByRole("link").first().click()
      // Before, the list's buttons are still there.
      await heading(page, "Deliveries").waitFor()
      await press(page, "Show data")
      await says(page, "Attempt (UTC)")
    },
  ],
  [
    "events",
    () => `${shop}/events`,
    async (page) => {
      await says(page, "payment.completed")
      await payment(page).getByRole("button", { name: "Data" }).first().click()
      await says(page, '"amount": 300')
    },
  ],
  [
    "extend",
    () => `${shop}/members/1055`,
    async (page) => {
      await press(page, "Extend")
      await choose(page, "+1 year")
      await press(page, "Dry run")
      await says(page, "It would last")
    },
  ],
  ["paused", () => `${pool}/members/swimmer-30`, (page) => says(page, "An operation")],
  ["paused-members", () => `${pool}/members?paused`, (page) => says(page, "swimmer-31")],
  [
    "pause",
    () => `${shop}/members/1055`,
    async (page) => {
      await press(page, "Pause")
      await page.getByLabel("Last day").fill("2030-01-30")
      await says(page, "through 30 Jan 2030")
    },
  ],
  [
    "resume",
    () => `${pool}/members/swimmer-30`,
    async (page) => {
      await press(page, "Resume")
      await says(page, "goes on at once")
    },
  ],
  [
    "grant",
    () => `${shop}/members`,
    async (page) => {
      await press(page, "Grant a membership")
      await page.getByLabel("Last day").fill("2030-01-30")
      await says(page, "through 30 Jan 2030")
    },
  ],
  [
    "extend-all",
    () => shop,
    async (page) => {
      await press(page, "Extend all")
      await choose(page, "Exact time")
    },
  ],
  [
    "extend-all-dry",
    () => shop,
    async (page) => {
      await press(page, "Add days")
      await field(page, "by").fill("P1D")
      await confirm(page, "Dry run", "ends would be announced")
    },
  ],
  [
    "time-zone",
    () => `${shop}/settings`,
    async (page) => {
      await press(page, "Set the time zone")
      await says(page, "No end moves.")
    },
  ],
  [
    "grace",
    () => `${pool}/settings`,
    async (page) => {
      await press(page, "Set the grace")
      await field(page, "grace").fill("")
      await confirm(page, "Dry run", "would expire.")
    },
  ],
  ["keys", () => "#/keys", (page) => says(page, "checkout")],
  [
    "audit",
    () => "#/audit",
    (page) => page.getByRole("cell", { name: "Key revoked" }).first().waitFor(),
  ],
  ["project", () => shop, (page) => says(page, "Done to all members")],
  ["settings", () => `${shop}/settings`, (page) => says(page, "Delete this project")],
  ["project-audit", () => `${shop}/audit`, (page) => says(page, "Invoice 2026-1107 paid")],

  // Without anything.
  ...["Overview", "Members", "Webhooks", "Events", "Audit", "Settings"].map((tab): Screen => [
    `empty ${tab}`,
    () => `#/projects/empty${tab === "Overview" ? "" : `/${tab.toLowerCase()}`}`,
    (page) => heading(page, `empty ${tab}`).waitFor(),
  ]),

  // With five webhooks, three failing.
  ["needs", () => "#/", failing],
  ["failing-project", () => pool, failing],
  ["failing-webhooks", () => `${pool}/webhooks`, (page) => says(page, "disabled")],
  ["failing-webhook", () => `${pool}/webhooks/${troubled[1]}`, (page) => says(page, "HTTP 500")],
  [
    "disabled-webhook",
    () => `${pool}/webhooks/${troubled[3]}`,
    (page) => button(page, "Enable").waitFor(),
  ],
  [
    "unreachable-webhook",
    () => `${pool}/webhooks/${troubled[4]}`,
    (page) => says(page, "ECONNREFUSED"),
  ],
]

/** Pictures in the documentation. */
const pictured = new Set([
  "needs",
  "needs-dark",
  "needs-phone",
  "needs-dark-phone",
  "failing-project",
  "members",
  "member",
  "member-dark",
  "member-phone",
  "member-dark-phone",
  "extend",
  "webhooks",
  "failing-webhook-dark",
  "delivery",
  "events",
  "keys",
  "project-audit",
])

it.each(screens)(
  "nothing is wrong with it, in both colours and on a phone: %s",
  (name, place, ready) =>
    visit(place(), async (page) => {
      await ready(page)
      await loaded(page)
      // A list is dimmed while it is read again.
      await expect.poll(() => page.locator(".old").count()).toBe(0)
      for (const width of [viewport.width, narrow]) {
        await page.setViewportSize({ ...viewport, width })
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width)
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme })
          // Nothing else depends on the colours.
          const rules = colorScheme === "light" ? undefined : ["color-contrast"]
          expect(await findingsOf(page, rules), `${colorScheme}, ${width}`).toEqual([])
          const suffix = `${colorScheme === "dark" ? "-dark" : ""}${width === narrow ? "-phone" : ""}`
          const picture = `${name}${suffix}`
          if (SCREENSHOTS !== undefined && pictured.has(picture)) {
            const shown = name === "delivery" ? page.locator("tr.more").first() : page
            await shown.screenshot({ path: `${SCREENSHOTS}/${picture}.png` })
          }
        }
      }
      await page.emulateMedia({ colorScheme: "light" })
    }),
)
