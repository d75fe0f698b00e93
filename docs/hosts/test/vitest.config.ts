import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// The servers of these runtimes decide these themselves: see the pages of Bun and Deno.
const decidedByRuntime = [
  "Bun > connections > answer pipelined requests in order",
  "Bun > an import > leaves the connection to the requests behind it, or tells that it ends",
  "Bun > an import > is refused without a key, a role, a path or a method, whatever is sent",
  "Bun > an import > has 2 MiB at most, whatever the limit of others is: .*",
  "Bun > projects > that do not exist count before a body that is too large",
  "Bun > a body > of 1 MiB or 10 MB is refused, with a Content-Length or chunked",
  "Bun > a body > is refused if it has a transfer coding other than chunks",
  "Deno > an event > is not sent after the response to the deletion of the webhook",
]

export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.test.ts"],
    testNamePattern: new RegExp(`^(?!(${decidedByRuntime.join("|")})$)`),
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    isolate: false,
    restoreMocks: true,
  },
})
