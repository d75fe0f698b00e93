/**
 * Every screen of the console in a browser: full, empty and with webhooks that fail, in light and dark, on
 * a desk and on a phone. With `SCREENSHOTS`, a folder, it leaves pictures there.
 */

import type { Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { path, reason } from "./chromium.ts"
import {
  type Session,
  button,
  findingsOf,
  heading,
  narrow,
  says,
  startSession,
  viewport,
} from "./pages.ts"
import { addHistory, addTroubles } from "./server.ts"

const { SCREENSHOTS } = process.env

describe.skipIf(path === undefined)(
  `screens of the console in Chromium${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    let session: Session
    let broken: string
    let troubled: ReadonlyArray<string>

    beforeAll(async () => {
      session = await startSession(async (server) => {
        broken = (await addHistory(server)).broken
        troubled = await addTroubles(server)
      })
    })

    afterAll(() => session.close())

    const shop = "#/projects/shop"

    const screens: ReadonlyArray<
      readonly [name: string, place: () => string, ready: (page: Page) => Promise<unknown>]
    > = [
      ["overview", () => "#/", (page) => heading(page, "Deliveries a minute").waitFor()],
      ["projects", () => "#/projects", (page) => says(page, "gym")],
      ["members", () => "#/projects/pool/members", (page) => says(page, "swimmer-12")],
      ["member", () => `${shop}/members/1055`, (page) => says(page, "Invoice 2026-1107 paid")],
      ["webhooks", () => `${shop}/webhooks`, (page) => says(page, "failing")],
      [
        "webhook",
        () => `${shop}/webhooks/${broken}`,
        async (page) => {
          // The latest failure is open.
          await says(page, "Attempt (UTC)")
        },
      ],
      [
        "delivery",
        () => `${shop}/webhooks/${broken}`,
        async (page) => {
          await button(page, "Show request and responses").click()
          await says(page, "The queue is full.")
        },
      ],
      [
        "event",
        () => `${shop}/events`,
        async (page) => {
          await page
            .getByRole("row", { name: /payment/ })
            .getByRole("link")
            .first()
            .click()
          // Before, the buttons of the list are still there.
          await heading(page, "Deliveries").waitFor()
          await button(page, "Show data").click()
          await says(page, "Attempt (UTC)")
        },
      ],
      [
        "events",
        () => `${shop}/events`,
        async (page) => {
          await says(page, "payment.completed")
          await page
            .getByRole("row", { name: /payment/ })
            .getByRole("button", { name: "Data" })
            .first()
            .click()
          await says(page, '"amount": 300')
        },
      ],
      [
        "extend",
        () => `${shop}/members/1055`,
        async (page) => {
          await button(page, "Extend").click()
          await button(page, "+1 year").click()
          await button(page, "Dry run").click()
          await says(page, "It would end")
        },
      ],
      ["keys", () => "#/keys", (page) => says(page, "checkout")],
      ["audit", () => "#/audit", (page) => says(page, "Key revoked")],
      ["project", () => shop, (page) => says(page, "Done to all members")],
      ["settings", () => `${shop}/settings`, (page) => says(page, "Delete this project")],
      ["project-audit", () => `${shop}/audit`, (page) => says(page, "Invoice 2026-1107 paid")],
    ]

    /** Where each of them is found without anything. */
    const emptyScreens = ["overview", "members", "webhooks", "events", "audit", "settings"].map(
      (tab) =>
        [
          `empty ${tab}`,
          () => (tab === "overview" ? "#/projects/empty" : `#/projects/empty/${tab}`),
          (page: Page) =>
            heading(page, `empty ${tab.replace(/^./, (one) => one.toUpperCase())}`).waitFor(),
        ] as const,
    )

    const failing = (page: Page) => page.locator(".needs li").nth(2).waitFor()

    /** With three of five webhooks that fail. */
    const failingScreens: typeof screens = [
      ["needs", () => "#/", failing],
      ["failing-project", () => "#/projects/pool", failing],
      ["failing-webhooks", () => "#/projects/pool/webhooks", (page) => says(page, "disabled")],
      [
        "failing-webhook",
        () => `#/projects/pool/webhooks/${troubled[1]}`,
        (page) => says(page, "HTTP 500"),
      ],
      [
        "disabled-webhook",
        () => `#/projects/pool/webhooks/${troubled[3]}`,
        (page) => button(page, "Enable").waitFor(),
      ],
      [
        "unreachable-webhook",
        () => `#/projects/pool/webhooks/${troubled[4]}`,
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

    it.each([...screens, ...emptyScreens, ...failingScreens])(
      "nothing is wrong with it, in both colours and on a phone: %s",
      async (name, place, ready) => {
        const test = async (page: Page): Promise<void> => {
          await ready(page)
          await expect.poll(() => page.getByText("Loading…").count()).toBe(0)
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
        }
        await session.visit(place(), test)
      },
    )
  },
)
