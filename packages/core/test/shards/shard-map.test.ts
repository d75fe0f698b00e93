import { expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { ProjectId } from "../../src/base/values.ts"
import { type Projects, makeShardMap } from "../../src/shards/shard-map.ts"

const mapOf = (...shards: ReadonlyArray<Projects>) => {
  const map = Result.getOrThrow(makeShardMap(shards))
  return (id: string) => map(ProjectId(id))
}

it("finds a project by its id, then by the functions in their order, then among the others", () => {
  const of = mapOf(
    (id) => id.startsWith("a"),
    "others",
    ["abc", "d"],
    (id) => id.length === 2,
  )
  expect(["abc", "d", "a", "ab", "bc", "x"].map(of)).toEqual([2, 2, 0, 0, 3, 1])
})

it("finds no shard for what none names", () => {
  expect(mapOf(["a"], (id) => id === "b")("c")).toBeUndefined()
  expect(mapOf([])("a")).toBeUndefined()
})

it.each([
  [[["a", "b"], ["b"]], "[1].projects names b, which an earlier entry names, too"],
  [["others", [], "others"], '[2].projects names "others", which an earlier entry names, too'],
] as const)("refuses what two shards name: %j", (shards, message) => {
  expect(makeShardMap(shards)).toMatchObject(Result.fail({ message }))
})

it("takes a project that an entry names twice once", () => {
  expect(mapOf([], ["a", "a"])("a")).toBe(1)
})
