/** `tenure listen`, at a server. */

import type { ServerResponse } from "node:http"
import { verifyWebhook } from "@tenure/client"
import { startReceiver } from "@tenure/testing/conformance"
import { expect, it, onTestFinished } from "vitest"
import { jsonLines, tenureWith, wordsOf } from "./in-process.ts"
import { startProxy, useServer } from "./server.ts"

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

const { begin } = useServer()

const beginListening = async () => {
  const { environment, print, run } = await begin()
  return {
    environment,
    run,
    publish: (amount: number) => print`trigger paid --data ${JSON.stringify({ amount })}`,
    trigger: (type: string) => print`trigger ${type}`,
    listen: async (args: ReadonlyArray<string>, more: object = {}) => {
      const { start } = tenureWith({ ...environment, TENURE_WEBHOOK_SECRET: secret, ...more })
      const running = start`listen ${args}`
      await expect.poll(() => running.printed.stderr).toContain("Listening")
      return running
    },
  }
}

const cursorIn = (text: string): string => /--after (\S+)/.exec(text)?.[1] ?? ""

it("forwards events as a webhook sends them, and goes on without a gap after its connection broke", async () => {
  const { close, received, until, url } = await startReceiver()
  onTestFinished(close)
  const { environment, listen, publish, trigger } = await beginListening()
  let following: ServerResponse | undefined
  const proxy = await startProxy(environment.TENURE_URL, (request, response) => {
    if (request.headers.accept === "text/event-stream") following = response
    return "passed"
  })
  const { interrupt, printed } = await listen(["--forward-to", url, "--type", "paid"], {
    TENURE_URL: proxy,
  })
  await trigger("other")
  await publish(1)
  await until(1)
  following?.destroy()
  await publish(2)
  await until(2)
  const events = received.map(({ body, headers }) => verifyWebhook({ headers, body }, [secret]))
  expect(await Promise.all(events)).toMatchObject([
    { type: "paid", data: { amount: 1 } },
    { type: "paid", data: { amount: 2 } },
  ])
  expect(following).toBeDefined()
  await expect.poll(() => printed.stderr.match(/→ 204/g)).toHaveLength(2)
  const { stderr } = await interrupt()
  expect(cursorIn(stderr)).not.toBe("")
  expect(stderr).not.toContain(secret)
})

it("goes on after a cursor, with one event in each line of JSON", async () => {
  const { listen, publish } = await beginListening()
  await publish(1)
  const first = await listen(["--json", "--after", "start"])
  await expect.poll(() => first.printed.stdout).toContain("paid")
  const after = cursorIn((await first.interrupt()).stderr)
  await publish(3)
  const second = await listen(["--json", "--after", after])
  await expect.poll(() => second.printed.stdout).toContain("paid")
  const { stdout } = await second.interrupt()
  expect(jsonLines(stdout)).toMatchObject([{ type: "paid", data: { amount: 3 } }])
})

it("goes on with the next event when the receiver fails", async () => {
  const { close, until, url } = await startReceiver((response) => response.writeHead(500).end())
  onTestFinished(close)
  const { listen, publish } = await beginListening()
  const { printed } = await listen(["--forward-to", url])
  await publish(4)
  await publish(5)
  await until(2)
  await expect.poll(() => printed.stderr.match(/→ 500/g)).toHaveLength(2)
})

it.each([
  ["--forward-to file:///etc", 2],
  ["--after nonsense", 1],
  ["--project none", 3],
])("%s is exit code %i", async (args, code) => {
  const { run } = await begin()
  expect(await run`listen ${wordsOf(args)}`).toMatchObject({ code })
})
