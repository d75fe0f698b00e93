import { once } from "node:events"
import * as Net from "node:net"
import { text } from "node:stream/consumers"
import { exchange, parseResponses } from "@tenure/testing"
import { expect, it } from "vitest"
import { body, extendOne, lines, serving } from "./support.ts"

it("clients that wait for a go-ahead get one, and none for a body that is too large", () =>
  serving(async ({ token, url }) => {
    const waiting = (length: number, ...more: ReadonlyArray<string>) =>
      lines(
        `PATCH ${extendOne} HTTP/1.1`,
        "Host: localhost",
        `Authorization: Bearer ${token}`,
        "Expect: 100-continue",
        "Content-Type: application/json",
        `Content-Length: ${length}`,
        ...more,
      )
    const { hostname, port } = new URL(url)
    const socket = Net.connect(Number(port), hostname)
    socket.write(waiting(body.length, "Connection: close"))
    const [first] = await once(socket, "data")
    expect(String(first)).toContain("HTTP/1.1 100 Continue")
    socket.write(body)
    expect(parseResponses(await text(socket))[0]?.status).toBe(200)
    // What came next could not be told from the body that may or may not be sent.
    const refused = await exchange(url, waiting(1_000_000))
    expect(refused).toMatch(/^HTTP\/1\.1 413 /)
    expect(parseResponses(refused)[0]?.headers["connection"]).toBe("close")
  }))
