/** Decodes arguments of in-process calls. Each function fails with an error that names the field. */

import * as Effect from "effect/Effect"
import * as Instant from "./Instant.ts"
import { InvalidInput } from "./InvalidInput.ts"
import { ProjectId } from "./Project.ts"
import type { Refined } from "./Refined.ts"
import * as Setting from "./Setting.ts"

/** Fails because an argument is not what it must be. */
export const invalid = (field: string, expected: string): Effect.Effect<never, InvalidInput> =>
  Effect.fail(new InvalidInput({ field, problem: `must be ${expected}` }))

/** Decodes text by the constructor of a refined type. */
export const decode = <A extends string>(
  field: string,
  { expected, is }: Refined<string, A>,
  text: string,
): Effect.Effect<A, InvalidInput> =>
  typeof text === "string" && is(text) ? Effect.succeed(text) : invalid(field, expected)

/** Decodes a value as the option of the same definition is read. */
export const read = <I, O>(
  field: string,
  setting: Setting.Setting<I, O>,
  given: NoInfer<I>,
): Effect.Effect<O, InvalidInput> => Effect.fromResult(setting.read(given, field))

/** Decodes the id of a project. */
export const projectId = (text: string): Effect.Effect<ProjectId, InvalidInput> =>
  decode("projectId", ProjectId, text)

/** Decodes an instant into milliseconds since the epoch. */
export const instant = (
  field: string,
  input: Instant.Input,
): Effect.Effect<number, InvalidInput> => {
  const millis = Instant.fromInput(input)
  return millis === undefined ? invalid(field, Instant.expected) : Effect.succeed(millis)
}

const pageSizes = Setting.count({ most: 10_000 })

/** Decodes the `limit` of a paged list: 1 to 10,000 items. */
export const pageSize = (limit: number): Effect.Effect<number, InvalidInput> =>
  read("limit", pageSizes, limit)
