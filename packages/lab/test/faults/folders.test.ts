/** Compares a folder with what a killed process had answered. */

import { expect, it } from "vitest"
import { type Content, changeOf, compare } from "../../faults/scenarios/folders.ts"

const reasonOf = (number: number): string => changeOf(1, "1001", number).reason
const whole = (number: number) => ({
  reason: reasonOf(number),
  changes: 1,
  events: 1,
  deliveries: 1,
})
const differences = (found: Content["found"], untrue: Content["untrue"] = []) =>
  compare(1, new Set(), new Set([reasonOf(1), reasonOf(2)]), { found, untrue })

it("finds what is lost, made up, there in parts or twice", () => {
  expect(differences([whole(1), whole(2)])).toEqual([])
  expect(differences([whole(1), whole(2), whole(3)])).toEqual([])
  expect(differences([whole(1)])).toEqual(["1/1001/2 is lost"])
  expect(differences([whole(1), whole(2), whole(4)])).toEqual(["1/1001/4 was never made"])
  expect(differences([whole(1), { ...whole(2), events: 0 }])).toHaveLength(1)
  expect(differences([whole(1), { ...whole(2), changes: 2 }])).toHaveLength(1)
  expect(differences([whole(1), whole(2)], [{ user: "1001" }])).toHaveLength(1)
})
