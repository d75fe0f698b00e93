import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

// The runtimes' own servers decide these: see the pages for Bun and Deno.
const decidedByRuntime = [
  "Bun > connections > answer pipelined requests in order",
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
