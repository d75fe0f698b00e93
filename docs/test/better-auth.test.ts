/** The code in `docs/hosts/better-auth.md` runs, in Better Auth. */

import { testTenure } from "@tenure/testing"
import { memoryAdapter } from "better-auth/adapters/memory"
import { expect, it, onTestFinished, vi } from "vitest"
import { examplesIn, writeExamples } from "./examples.ts"

const folder = await writeExamples("better-auth", examplesIn("docs/hosts/better-auth.md"))

it("has members from sign-up to the end of the trial", async () => {
  vi.stubEnv("BETTER_AUTH_SECRET", "a secret for tests, which is long enough")
  vi.stubEnv("BETTER_AUTH_URL", "http://localhost:3000")
  onTestFinished(() => void vi.unstubAllEnvs())
  const { clock, close, tenure } = await testTenure({ start: new Date() })
  onTestFinished(close)
  await tenure.memberships.createProject("p1")
  const { authOf, isMember } = await import(`${folder}/docs-hosts-better-auth.md-1.ts`)
  const database = memoryAdapter({ user: [], session: [], account: [], verification: [] })
  const auth = authOf(tenure, database)
  const body = { name: "Ada", email: "ada@example.com", password: "correct horse battery" }
  const signedUp = await auth.api.signUpEmail({ body, returnHeaders: true })
  const headers = new Headers({ cookie: String(signedUp.headers.get("set-cookie")).split(";")[0] })
  expect(await isMember(auth, headers)).toBe(true)
  expect(await isMember(auth, new Headers())).toBe(false)
  await clock.advance("15 days")
  expect(await isMember(auth, headers)).toBe(false)
})
