/** Pages of the console in Chromium, and what tests do with them. */

import axe from "axe-core"
import type { Browser, BrowserContextOptions, Page, Request } from "playwright-core"
import { expect } from "vitest"
import { launch } from "./chromium.ts"
import { type Server, startServer, tokens } from "./server.ts"

/** A page, and all that went wrong in it. */
export interface Opened {
  readonly page: Page
  readonly faults: ReadonlyArray<string>
}

export const viewport = { width: 1280, height: 800 }

/** The width of a phone. */
export const narrow = 390

/**
 * Opens a place of the console, signed in with a token if there is one. Faults are errors, what the policy
 * forbids, and requests elsewhere.
 */
export const openWith = async (
  browser: Browser,
  server: Pick<Server, "url">,
  place: string,
  token: string,
  options: BrowserContextOptions,
): Promise<Opened> => {
  const context = await browser.newContext({
    viewport,
    reducedMotion: "reduce",
    ...options,
  })
  context.setDefaultTimeout(Number(process.env["PATIENCE"] ?? 20_000))
  if (token !== "") {
    await context.addCookies([
      { name: "tenure_console", value: token, url: `${server.url}/console/`, sameSite: "Strict" },
    ])
  }
  const page = await context.newPage()
  const faults: Array<string> = []
  page.on("pageerror", ({ message }) => void faults.push(message))
  page.on("console", (message) => {
    // Browsers also note every response that is no success.
    const isFault = message.type() === "error" && !message.text().startsWith("Failed to load")
    if (isFault) faults.push(message.text())
  })
  page.on("request", (request) => {
    if (!request.url().startsWith(`${server.url}/console/`)) faults.push(request.url())
  })
  await page.goto(`${server.url}/console/${place}`)
  return { page, faults }
}

// Rows are alike.
const firstRows = { include: [["html"]], exclude: [["tbody tr:nth-child(n + 16)"]] }

/** Says what is wrong with a page for those who do not see it or use no mouse, by some rules or by all. */
export const findingsOf = async (page: Page, rules?: ReadonlyArray<string>) => {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(axe.source)
  const found: unknown = await page.evaluate(
    `axe.run(${JSON.stringify(firstRows)}, ${JSON.stringify({ runOnly: rules, resultTypes: ["violations"] })}).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html)))`,
  )
  return Array.isArray(found) ? found.map(String) : ["no result"]
}

export const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true })

export const heading = (page: Page, name: string) =>
  page.getByRole("heading", { name, exact: true })

export const field = (page: Page, name: string) => page.locator(`dialog [name="${name}"]`)

export const inDialog = (page: Page, name: string) =>
  page.getByRole("dialog").getByRole("button", { name, exact: true })

export const says = (page: Page, text: string | RegExp) => page.getByText(text).first().waitFor()

/** A browser at the bundled server, and a page of an admin. */
export interface Session {
  readonly server: Server
  readonly browser: Browser
  /** Tests share the page: to open another one takes longer than most of them. */
  readonly shared: Opened
  readonly close: () => Promise<void>
  readonly open: (place: string, token?: string, options?: BrowserContextOptions) => Promise<Opened>
  /** Goes to a place in the shared page, and waits until it shows another screen. */
  readonly goTo: (place: string) => Promise<void>
  /** Does something at a place in the shared page, and checks that nothing went wrong. */
  readonly visit: (place: string, test: (page: Page) => Promise<void>) => Promise<void>
}

/** Starts a server and a browser. */
export const startSession = async (
  prepare: (server: Server) => Promise<void>,
): Promise<Session> => {
  const [server, browser] = await Promise.all([startServer(), launch()])
  await prepare(server)
  const open: Session["open"] = (place, token = tokens.admin, options = {}) =>
    openWith(browser, server, place, token, options)
  const shared = await open("#/keys")
  const goTo = async (place: string): Promise<void> => {
    const { page } = shared
    await page.setViewportSize(viewport)
    const url = `${server.url}/console/${place}`
    await page.locator("main").evaluate("(main) => main.classList.add('left')")
    await (page.url() === url ? page.reload() : page.goto(url))
    await page.locator("main:not(.left)").waitFor()
  }
  return {
    server,
    browser,
    shared,
    open,
    goTo,
    visit: async (place, test) => {
      const before = shared.faults.length
      await goTo(place)
      await test(shared.page)
      expect(shared.faults.slice(before)).toEqual([])
    },
    close: async () => {
      await browser.close()
      await server.close()
    },
  }
}

/** Counts the requests of a page from now on, and those that are under way. */
export const countRequests = (page: Page) => {
  let asked = 0
  const underWay = new Set<Request>()
  const end = (request: Request) => void underWay.delete(request)
  page.on("request", (request) => {
    asked++
    underWay.add(request)
  })
  page.on("requestfinished", end)
  page.on("requestfailed", end)
  return { asked: () => asked, underWay: () => underWay.size }
}
