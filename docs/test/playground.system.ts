/** The site's playground in a browser: without the site around it, which takes a minute to build. */

import { build } from "esbuild"
import type { Browser, Page } from "playwright-core"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { launch, path, reason } from "../../packages/console/test/browser/chromium.ts"
import { root } from "./examples.ts"

const url = "https://site.example/"

const program = `
  import { createApp } from "vue"
  import Playground from "./playground.ts"
  createApp(Playground).mount("#app")`

const bundle = async (): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: `${root}/docs/.vitepress/theme` },
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    conditions: ["@tenure/source"],
    define: {
      "process.env.NODE_ENV": '"production"',
      __VUE_OPTIONS_API__: "false",
      __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
    },
  })
  return outputFiles[0]?.text ?? ""
}

describe.skipIf(path === undefined)(
  `the playground in Chromium${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    let browser: Browser
    let code: string

    beforeAll(async () => {
      ;[browser, code] = await Promise.all([launch(), bundle()])
    })

    afterAll(() => browser.close())

    /** Opens it, with time standing still. */
    const open = async (): Promise<Page> => {
      const page = await browser.newPage()
      onTestFinished(() => page.close())
      // WebCrypto is whole on secure pages alone.
      const body = '<!doctype html><div id="app"></div>'
      await page.route(url, (route) => route.fulfill({ contentType: "text/html", body }))
      await page.goto(url)
      await page.addScriptTag({ type: "module", content: code })
      await page.getByText("membership.granted").nth(2).waitFor()
      return page
    }

    const click = (page: Page, name: string): Promise<void> =>
      page.getByRole("button", { name, exact: true }).click()

    const row = (page: Page, text: string) => page.getByRole("listitem").filter({ hasText: text })

    it("announces an end by a verified webhook, although a process was killed", async () => {
      const page = await open()
      await click(page, "Kill process 0")
      await row(page, "process 0down").waitFor()
      await click(page, "Past the next end")
      await row(page, "membership.expiredadaverified").waitFor()
      await row(page, "process 0up").waitFor()
    })

    it("extends a membership once, although the store was away", async () => {
      const page = await open()
      await click(page, "Take away")
      await click(page, "Extend ada by a minute")
      await click(page, "Past the next end")
      expect(await row(page, "membership.extended").count()).toBe(0)
      await click(page, "Give back")
      await page.getByLabel("Drag time forward").fill("60000")
      await row(page, "membership.extendedadaverified").waitFor()
      await row(page, "ends 00:01:30").waitFor()
      expect(await row(page, "membership.extended").count()).toBe(1)
    })

    it("repeats refused webhooks, and announces nothing early by a wrong clock", async () => {
      const page = await open()
      await click(page, "Refuse webhooks")
      await click(page, "Set the clock of process 1 an hour ahead")
      await page.getByLabel("Drag time forward").fill("22000")
      await row(page, "membership.expiringadaverifiedrefused").first().waitFor()
      expect(await row(page, "membership.expired").count()).toBe(0)
      await click(page, "Accept webhooks")
      await page.getByLabel("Drag time forward").fill("29000")
      await expect
        .poll(() => row(page, "membership.expiringadaverified").first().textContent())
        .not.toContain("refused")
    })

    it("goes on by itself until it is paused", async () => {
      const page = await open()
      await page.getByRole("combobox").selectOption("600")
      await click(page, "Start")
      await row(page, "membership.expiredlinusverified").waitFor()
      await click(page, "Pause")
      const time = await page.getByLabel("Time", { exact: true }).textContent()
      await click(page, "One step")
      await expect.poll(() => page.getByLabel("Time", { exact: true }).textContent()).not.toBe(time)
    })
  },
)
