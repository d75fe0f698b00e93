/** Console pages in Chromium, and what tests do with them. */

import axe from "axe-core"
import type { Browser, Page, Request } from "playwright-core"
import { afterAll, beforeAll, expect, onTestFinished } from "vitest"
import { path, useBrowser } from "./chromium.ts"
import { type Server, startServer, tokens } from "./server.ts"

export const viewport = { width: 1280, height: 800 }

/**
 * Opens a place in the console, signed in with a token if there is one. Faults are errors, what the policy forbids, and
 * requests elsewhere.
 */
const openIn = async (browser: Browser, url: string, place: string, token: string) => {
  const context = await browser.newContext({ viewport, reducedMotion: "reduce" })
  context.setDefaultTimeout(Number(process.env["PATIENCE"] ?? 20_000))
  if (token !== "") {
    await context.addCookies([
      { name: "tenure_console", value: token, url: `${url}/console/`, sameSite: "Strict" },
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
    if (!request.url().startsWith(`${url}/console/`)) faults.push(request.url())
  })
  await page.goto(`${url}/console/${place}`)
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

/** Presses a button, and then some in the dialog that it opens. */
export const press = async (page: Page, name: string, ...inside: ReadonlyArray<string>) => {
  await button(page, name).click()
  for (const one of inside) await inDialog(page, one).click()
}

/** Presses a button in the dialog, and waits until the page says something. */
export const confirm = async (page: Page, name: string, text: string) => {
  await inDialog(page, name).click()
  await says(page, text)
}

/** Fills in fields by their labels. */
export const fill = async (page: Page, fields: Readonly<Record<string, string>>) => {
  for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).fill(text)
}

/** Chooses one of several ways in the dialog. */
export const choose = (page: Page, name: string) =>
  page.getByRole("dialog").getByRole("radio", { name, exact: true }).check()

/** Waits until nothing is being loaded. */
export const loaded = (page: Page) => expect.poll(() => page.getByText("Loading…").count()).toBe(0)

/** How a page is opened. */
interface Opening {
  readonly token?: string
  /** The server, if it is another one. */
  readonly url?: string
  /** Faults that are none here. */
  readonly expected?: RegExp
}

/** Has a browser at the bundled server while a file's tests run, if there is a Chromium. */
export const useSession = (prepare: (server: Server) => Promise<void> = async () => {}) => {
  const browser = useBrowser()
  let server: Server
  // To open another one takes longer than most tests.
  let shared: Awaited<ReturnType<typeof openIn>>

  beforeAll(async () => {
    if (path === undefined) return
    server = await startServer()
    await prepare(server)
    shared = await openIn(browser(), server.url, "#/keys", tokens.admin)
  })
  afterAll(() => server?.close())

  /** Goes to a place in the shared page, and waits until it shows another screen. */
  const goTo = async (place: string): Promise<void> => {
    const { page } = shared
    await page.setViewportSize(viewport)
    const url = `${server.url}/console/${place}`
    await page.locator("main").evaluate("(main) => main.classList.add('left')")
    await (page.url() === url ? page.reload() : page.goto(url))
    await page.locator("main:not(.left)").waitFor()
  }

  /** Does something at a place in the shared page, and checks that nothing went wrong. */
  const visit = async (place: string, test: (page: Page) => Promise<void>) => {
    const before = shared.faults.length
    await goTo(place)
    await test(shared.page)
    expect(shared.faults.slice(before)).toEqual([])
  }

  return {
    server: () => server,
    client: () => server.client,
    goTo,
    visit,
    /** Opens its own page, in which nothing may go wrong until the test ends. */
    open: async (place: string, { expected, token, url }: Opening = {}): Promise<Page> => {
      const at = url ?? server.url
      const { faults, page } = await openIn(browser(), at, place, token ?? tokens.admin)
      onTestFinished(async () => {
        await page.context().close()
        expect(faults.filter((fault) => expected?.test(fault) !== true)).toEqual([])
      })
      return page
    },
  }
}

/** Counts a page's requests from now on, and those that are under way. */
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
