import { readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { refusal } from "../src/bin/node-version.ts"

it.each(["22.19.0", "22.20.1", "23.0.0", "24.21.0", "26.0.0-nightly"])(
  "the command runs on Node %s",
  (version) => {
    expect(refusal(version)).toBeUndefined()
  },
)

it.each(["18.20.4", "20.20.2", "22.18.0"])(
  "the command says that Node %s is too old",
  (version) => {
    expect(refusal(version)).toBe(`tenure needs Node 22.19 or newer. This is Node ${version}.`)
  },
)

it("the oldest version is the one that the package asks for", () => {
  const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"))
  expect(refusal("0.0.0")).toContain(engines.node.replace(">=", "Node "))
})
