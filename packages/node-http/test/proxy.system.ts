/** A process whose environment has proxies, because Node reads that when it starts. */

import { execFile } from "node:child_process"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { startReceiver } from "@tenure/testing/conformance"
import { Server as ProxyServer } from "proxy-chain"
import { expect, it } from "vitest"

const program = `
  import { proxyTransport } from "./src/proxy-transport.ts"
  import { send } from "./test/sending.ts"
  const by = proxyTransport({ url: process.env.PROXY })
  console.log(await send(process.env.TARGET), await send(process.env.TARGET, undefined, by))
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
  const own = new ProxyServer({ host: "127.0.0.1", port: 0 })
  await own.listen()
  const args = ["-C", "@tenure/source", "--input-type=module-typescript", "-e", program]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: {
      PATH: process.env["PATH"],
      TARGET: receiver.url,
      PROXY: `http://127.0.0.1:${own.port}`,
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: url,
      http_proxy: url,
      ALL_PROXY: url,
    },
  })
  expect(stdout.trim()).toBe("204 204")
  expect([proxied, receiver.received.length]).toEqual([0, 2])
  expect(own.stats.connectRequestCount).toBe(1)
  receiver.close()
  await own.close(true)
  proxy.close()
})
