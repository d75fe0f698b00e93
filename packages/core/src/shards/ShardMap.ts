/** The map of projects to shards: a decision by the id alone, so that it costs no round trip. */

import * as Result from "effect/Result"
import { InvalidInput } from "../base/InvalidInput.ts"
import { ProjectId } from "../base/Project.ts"
import * as Setting from "../base/Setting.ts"

/**
 * The projects of a shard: their ids; a function that tells whether a project is one of them; or `"others"`,
 * those that no shard names.
 */
export type Projects = ReadonlyArray<string> | ((projectId: string) => boolean) | "others"

const expected = 'an array of project ids, a function of a project id, or "others"'

/** The definition of the projects of a shard, as an option. */
export const projects = Setting.checked<Projects>(
  expected,
  (given) =>
    given === "others" ||
    typeof given === "function" ||
    (Array.isArray(given) && given.every((id) => typeof id === "string" && ProjectId.is(id))),
)

/** Returns the number of the shard of a project, counted from 0; `undefined` if no shard has it. */
export type ShardMap = (projectId: ProjectId) => number | undefined

const twice = (field: string, what: string) =>
  Result.fail(
    new InvalidInput({ field, problem: `names ${what}, which an earlier entry names, too` }),
  )

/**
 * Makes a map. Ids come before functions, which are asked in the order of their shards.
 *
 * @param shards - the projects of each shard. Fails with `InvalidInput` if two of them name the same
 */
export const make = (shards: ReadonlyArray<Projects>): Result.Result<ShardMap, InvalidInput> => {
  const named = new Map<string, number>()
  const asked: Array<readonly [(projectId: string) => boolean, number]> = []
  let others: number | undefined
  for (const [index, given] of shards.entries()) {
    const field = `[${index}].projects`
    if (typeof given === "function") asked.push([given, index])
    else if (given === "others") {
      if (others !== undefined) return twice(field, '"others"')
      others = index
    } else {
      for (const id of given) {
        if ((named.get(id) ?? index) !== index) return twice(field, id)
        named.set(id, index)
      }
    }
  }
  return Result.succeed(
    (projectId) => named.get(projectId) ?? asked.find(([has]) => has(projectId))?.[1] ?? others,
  )
}
