import { inspect } from "node:util"
import { expect, it } from "vitest"
import { MembershipNotFound } from "../../src/memberships/membership.ts"

it("prints an error with its message and its stack", () => {
  const error = new MembershipNotFound({ projectId: "p1", userId: "1001" })
  const [first = "", second = ""] = inspect(error).split("\n")
  expect(first).toBe('MembershipNotFound: The user "1001" has no membership in the project "p1".')
  expect(second).toMatch(/^    at .*tagged-error\.test\.ts/)
})
