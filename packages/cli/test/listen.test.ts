/** `tenure listen`, against the bundled server. */

import { verifyWebhook } from "@tenure/client"
import { startReceiver } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { startWith, tenureWith } from "./in-process.ts"
import { useServer } from "./server.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const server = useServer((environment) => tenureWith(environment)("projects", "create", "p"))

const inProject = (secrets: Readonly<Record<string, string>> = {}) => ({
  ...server.environment(),
  TENURE_PROJECT: "p",
  ...secrets,
})

const publish = (amount: number) =>
  tenureWith(inProject())("trigger", "paid", "--data", JSON.stringify({ amount }))

const listen = async (...args: ReadonlyArray<string>) => {
  const running = startWith(inProject({ TENURE_WEBHOOK_SECRET: secret }))("listen", ...args)
  onTestFinished(() => void running.interrupt())
  await expect.poll(() => running.printed.stderr).toContain("Listening")
  return running
}

const cursorIn = (text: string): string => /--after (\S+)/.exec(text)?.[1] ?? ""

it("forwards events as a webhook sends them", async () => {
  const { close, received, until, url } = await startReceiver()
  onTestFinished(close)
  const { interrupt, printed } = await listen("--forward-to", url, "--type", "paid")
  await tenureWith(inProject())("trigger", "other")
  await publish(1)
  await until(1)
  const events = received.map(({ body, headers }) => verifyWebhook({ headers, body }, [secret]))
  expect(await Promise.all(events)).toMatchObject([{ type: "paid", data: { amount: 1 } }])
  await expect.poll(() => printed.stderr.match(/→ 204/g)).toHaveLength(1)
  const { stderr } = await interrupt()
  expect(cursorIn(stderr)).not.toBe("")
  expect(stderr).not.toContain(secret)
})

it("goes on after a cursor, with one event in each line of JSON", async () => {
  const first = await listen("--json", "--after", "start")
  await expect.poll(() => first.printed.stdout).toContain("paid")
  const after = cursorIn((await first.interrupt()).stderr)
  await publish(3)
  const second = await listen("--json", "--after", after)
  await expect.poll(() => second.printed.stdout).toContain("paid")
  const { stdout } = await second.interrupt()
  expect(
    stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ type: "paid", data: { amount: 3 } }])
})

it("goes on with the next event when the receiver fails", async () => {
  const { close, until, url } = await startReceiver((response) => response.writeHead(500).end())
  onTestFinished(close)
  const { printed } = await listen("--forward-to", url)
  await publish(4)
  await publish(5)
  await until(2)
  await expect.poll(() => printed.stderr.match(/→ 500/g)).toHaveLength(2)
})

it.each([
  { args: ["--forward-to", "file:///etc"], code: 2 },
  { args: ["--after", "nonsense"], code: 1 },
  { args: ["--project", "none"], code: 3 },
])("$args is exit code $code", async ({ args, code }) => {
  expect(await tenureWith(inProject())("listen", ...args)).toMatchObject({ code })
})
