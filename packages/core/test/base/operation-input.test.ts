/** Operation inputs: one declaration reads both a host's arguments and a request's fields. */

import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { InvalidInput } from "../../src/base/errors.ts"
import { instantSetting } from "../../src/base/input.ts"
import { chosenBy, either, input } from "../../src/base/operation-input.ts"
import * as Setting from "../../src/base/setting.ts"

const houseId = Setting.string("an id", (id) => id !== "")
const nameSetting = Setting.optional(Setting.string("a name", (name) => name !== ""))

const room = input(
  { houseId },
  {
    firstName: nameSetting,
    bedCount: Setting.withDefault(Setting.integer({ most: 9 }), 1),
    isOpen: Setting.optional(Setting.orNull(Setting.boolean)),
    from: Setting.optional(instantSetting),
  },
)

const house = { houseId: "h1" }

const optional = <A>(value: fc.Arbitrary<A>) => fc.option(value, { nil: undefined })

const rooms = fc.record({
  firstName: optional(fc.string({ minLength: 1 })),
  bedCount: optional(fc.integer({ min: 1, max: 9 })),
  isOpen: optional(fc.option(fc.boolean())),
  from: optional(fc.date({ min: new Date(0), max: new Date(8e12), noInvalidDate: true })),
})

const success = <A, E>(result: Result.Result<A, E>): A => Result.getOrThrow(result)

const asRequest = (given: object, source: "json" | "query" = "json") =>
  room.fromRequest({ house_id: "h1" }, given, source)

describe("an input", () => {
  it("is the same for a host and in the body of a request", () => {
    fc.assert(
      fc.property(rooms, ({ bedCount, firstName, from, isOpen }) => {
        const host = room.fromHost({ ...house, bedCount, firstName, from, isOpen })
        const sent = { first_name: firstName, bed_count: bedCount, is_open: isOpen, from }
        expect(asRequest(JSON.parse(JSON.stringify(sent)))).toEqual(host)
      }),
    )
  })

  it("is read from the texts of a query", () => {
    const query = { first_name: "1", bed_count: "2", is_open: "false" }
    expect(success(asRequest(query, "query"))).toEqual({
      ...house,
      firstName: "1",
      bedCount: 2,
      isOpen: false,
      from: undefined,
    })
    for (const wrong of [{ bed_count: "02" }, { bed_count: "1e0" }, { is_open: "yes" }]) {
      expect(Result.isFailure(asRequest(wrong, "query"))).toBe(true)
    }
    // In a body, they are no numbers.
    expect(Result.isFailure(asRequest({ bed_count: "2" }))).toBe(true)
  })

  it("has only own properties", () => {
    const inherited = Object.create({ bedCount: 5, houseId: "h2" })
    expect(room.fromHost(Object.assign(inherited, house))).toMatchObject({
      success: { houseId: "h1", bedCount: 1 },
    })
  })

  it.each([
    [{ bed_count: 0 }, "bed_count must be a whole number from 1 to 9; received 0"],
    [{ bed_count: null }, "bed_count must be a whole number from 1 to 9; received null"],
    [{ is_open: 1 }, "is_open must be true or false, or null; received 1"],
    [{ beds: 1 }, "beds is unknown: known are first_name, bed_count, is_open, from"],
    [{ bedCount: 1 }, "bedCount is unknown: known are first_name, bed_count, is_open, from"],
    [{ beds: 1, bed_count: 0 }, "beds is unknown: known are first_name, bed_count, is_open, from"],
  ])("names what is wrong in %j", (given, message) => {
    expect(asRequest(given)).toMatchObject({ failure: { message } })
  })

  it("names the id in a path after the fields, and a host's before them", () => {
    const wrong = room.fromRequest({ house_id: "" }, { bed_count: 0 }, "json")
    expect(wrong).toMatchObject({ failure: { field: "bed_count" } })
    expect(room.fromHost({ houseId: "", bedCount: 0 })).toMatchObject({
      failure: { field: "houseId" },
    })
  })

  const isOpen = Setting.optional(Setting.orNull(Setting.boolean))

  it("can need a field", () => {
    const some = input({}, { firstName: nameSetting, isOpen }, { needsField: true })
    const problem = "or another setting is needed"
    expect(some.fromHost({})).toMatchObject({ failure: { field: "firstName", problem } })
    const read = some.fromRequest({}, {}, "json")
    expect(read).toMatchObject({ failure: { field: "first_name", problem } })
    expect(Result.isSuccess(some.fromHost({ isOpen: null }))).toBe(true)
  })

  it("can need one of some fields", () => {
    const fields = {
      firstName: Setting.optional(nameSetting),
      bedCount: Setting.optional(nameSetting),
    }
    const some = input({}, { isOpen, ...fields }, { needsField: Object.keys(fields) })
    const problem = "or another setting is needed"
    expect(some.fromHost({ isOpen: true })).toMatchObject({
      failure: { field: "firstName", problem },
    })
    const read = some.fromRequest({}, { is_open: true }, "json")
    expect(read).toMatchObject({ failure: { field: "first_name", problem } })
    expect(Result.isSuccess(some.fromHost({ bedCount: "two" }))).toBe(true)
  })

  it("ignores fields that are not declared where it is open, but no other spelling of a name", () => {
    const open = input({}, { bedCount: Setting.integer() }, { isOpen: true })
    const read = (given: object) => open.fromRequest({}, given, "json")
    expect(read({ beds: 1, bed_count: 3 })).toEqual(Result.succeed({ bedCount: 3 }))
    for (const name of ["bedCount", "bed-count", "BED_COUNT", "BedCount"]) {
      expect(read({ bed_count: 3, [name]: 1 })).toMatchObject({
        failure: { field: name, problem: 'must be written "bed_count"' },
      })
    }
  })
})

describe("the fingerprint of an input", () => {
  const fingerprint = (given: Parameters<typeof room.fromHost>[0]): string =>
    JSON.stringify(room.fingerprintOf(success(room.fromHost(given))))

  it("is another one for every other input", () => {
    fc.assert(
      fc.property(rooms, rooms, (one, other) => {
        const decoded = [one, other].map((each) => success(room.fromHost({ ...house, ...each })))
        const [first, second] = decoded.map((each) => JSON.stringify(each))
        expect(fingerprint({ ...house, ...one }) === fingerprint({ ...house, ...other })).toBe(
          first === second,
        )
      }),
    )
    expect(fingerprint({ houseId: "h2" })).not.toBe(fingerprint(house))
  })

  it("has the items of a set, and nothing of what cannot be written as JSON", () => {
    const any = input({}, { any: Setting.guarded<unknown>("anything", () => true) })
    expect(any.fingerprintOf({ any: new Set([1]) })).not.toEqual(
      any.fingerprintOf({ any: new Set([2]) }),
    )
    expect(any.fingerprintOf({ any: 1n })).toEqual([])
  })

  it("is that of an input from before a field was added", () => {
    const older = input({ houseId }, { firstName: nameSetting })
    const given = { ...house, firstName: "a" }
    const before = JSON.stringify(older.fingerprintOf(success(older.fromHost(given))))
    expect(fingerprint({ ...given, bedCount: 1 })).toBe(before)
  })
})

describe("one of two inputs", () => {
  const byName = input({}, { name: Setting.string("a name", () => true) })
  const byNumber = input(
    {},
    { number: Setting.integer(), isExact: Setting.optional(Setting.boolean) },
  )
  const read = (given: object) => either(byName, byNumber).fromRequest({}, given, "json")

  it("is the one whose first field is there", () => {
    expect(read({ name: "a" })).toEqual(Result.succeed({ name: "a" }))
    expect(read({ number: 5 })).toEqual(Result.succeed({ number: 5, isExact: undefined }))
    expect(read({ name: "a", is_exact: true })).toMatchObject({ failure: { field: "is_exact" } })
  })

  it.each([{}, { name: "a", number: 5 }, { is_exact: true }])("is neither for %j", (given) => {
    const problem = "or number is needed, not both"
    expect(read(given)).toEqual(Result.fail(new InvalidInput({ field: "name", problem })))
  })
})

describe("an input chosen by a field", () => {
  const byName = input({ houseId }, { name: Setting.string("a name", () => true) })
  const byNumber = input(
    { houseId },
    { bedNumber: Setting.integer(), isExact: Setting.boolean },
    { isOpen: true },
  )
  const chosen = chosenBy(["bedNumber"], byName, byNumber)
  const read = (given: object) => chosen.fromRequest({ house_id: "h1" }, given, "json")

  it("is the other one if the field is there, and the one otherwise", () => {
    const other = { ...house, bedNumber: 5, isExact: true }
    expect(chosen.fromHost(other)).toEqual(Result.succeed(other))
    expect(read({ bed_number: 5, is_exact: true })).toEqual(Result.succeed(other))
    const one = { ...house, name: "a" }
    expect(chosen.fromHost({ ...one, bedNumber: undefined })).toEqual(Result.succeed(one))
    expect(read({ name: "a" })).toEqual(Result.succeed(one))
    expect(read({ name: "a", bed_number: 5, is_exact: true })).toEqual(Result.succeed(other))
    expect(read({ bed_number: null })).toMatchObject({ failure: { field: "bed_number" } })
    expect(read({})).toMatchObject({ failure: { field: "name" } })
  })

  it("has the names of both, and the fingerprint of the chosen one", () => {
    expect(chosen.wireNames).toEqual(["name", "bed_number", "is_exact"])
    const other = { ...house, bedNumber: 5, isExact: true }
    expect(chosen.fingerprintOf(other)).toEqual(byNumber.fingerprintOf(other))
    expect(chosen.fingerprintOf({ ...house, name: "a" })).toEqual(
      byName.fingerprintOf({ ...house, name: "a" }),
    )
  })
})
