/** What is said of connections that fail. */

import { createServer } from "node:http"
import { createServer as createTlsServer } from "node:https"
import type { Server } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import { makeAuthority } from "../../postgres/test/certificates.ts"
import { tenureWith } from "./in-process.ts"

const portOf = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return address !== null && typeof address === "object" ? address.port : 0
}

const sayOf = async (url: string): Promise<string> => {
  const { code, stderr } = await tenureWith({ TENURE_URL: url, TENURE_TOKEN: "any" })("status")
  expect(code).toBe(4)
  return stderr
}

it("why a connection fails is said in words, with what helps", async () => {
  const { certificate, key } = makeAuthority().issue(["127.0.0.1"])
  const [withoutTls, unknown, away] = await Promise.all([
    sayOf(`https://127.0.0.1:${await portOf(createServer())}`),
    sayOf(`https://127.0.0.1:${await portOf(createTlsServer({ cert: certificate, key }))}`),
    sayOf("http://127.0.0.1:19"),
  ])
  expect(withoutTls).toContain("(wrong version number). The server speaks http there, not https")
  expect(unknown).toContain("NODE_EXTRA_CA_CERTS")
  expect(away).toContain("Check the URL, and that the server runs.")
})
