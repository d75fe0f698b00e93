import { execFile } from "node:child_process"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { startReceiver } from "@tenure/testing/conformance"
import { expect, it } from "vitest"

const program = `
  import { send } from "./test/sending.ts"
  console.log(await send(process.env.TARGET))
`

it("webhooks do not use the proxies of the environment", async () => {
  let proxied = 0
  const proxy = createServer((_request, response) => {
    proxied++
    response.writeHead(502).end()
  })
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  const address = proxy.address()
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
  const receiver = await startReceiver()
  const args = ["-C", "@tenure/source", "--input-type=module-typescript", "-e", program]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: {
      PATH: process.env["PATH"],
      TARGET: receiver.url,
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: url,
      http_proxy: url,
      ALL_PROXY: url,
    },
  })
  expect(stdout.trim()).toBe("204")
  expect([proxied, receiver.received.length]).toEqual([0, 1])
  receiver.close()
  proxy.close()
})
