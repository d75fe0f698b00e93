/** A membership's metadata: a few short texts by name, such as its plan. */

import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { InvalidInput } from "../base/errors.ts"
import * as Setting from "../base/setting.ts"
import { TaggedError } from "../base/tagged-error.ts"

/** Texts by name, such as `{ plan: "gold", seat: "12A" }`; `{}` without any. */
export type Metadata = Readonly<Record<string, string>>

/** A metadata change: new texts by name, and `null` to remove a name. Other names stay. */
export type MetadataPatch = Readonly<Record<string, string | null>>

/** The membership has other metadata than expected, or does not exist any more. */
export class MetadataConflict extends TaggedError("MetadataConflict") {}

/** The most names. */
export const maxMetadata = 16

/** The pattern for names. They begin with a letter, so that none is `__proto__` or sorted as a number. */
export const metadataNamePattern = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/

/** The pattern for texts. PostgreSQL cannot store NUL, and a lone surrogate has no UTF-8 encoding. */
export const metadataValuePattern = /^[^\0\p{Cs}]{1,255}$/u

/** The metadata for a membership without any. */
export const noMetadata: Metadata = Object.freeze({})

const isText = (value: unknown): value is string =>
  typeof value === "string" && metadataValuePattern.test(value)

/** Returns an object with its names in one order, so that equal metadata has equal JSON. */
const sorted = <A>(entries: ReadonlyArray<readonly [name: string, value: A]>) =>
  Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))

const nameFormat = "1 to 40 letters, digits and _.-, a letter first"

const textFormat = "a text of 1 to 255 characters"

/** Describes valid metadata, for error messages. */
export const metadataFormat = `an object of at most ${maxMetadata} texts of 1 to 255 characters by name, and names of ${nameFormat}`

const asObject = (given: unknown): object | undefined =>
  Predicate.isObject(given) ? given : undefined

// An invalid value may name a person, so errors show valid names alone.
const other = () => "another value"

const invalid = (field: string, problem: string) =>
  Result.fail(new InvalidInput({ field, problem }))

/** Reads an object with values by name. Errors name the wrong one. */
const entriesOf = <A>(
  isValue: (value: unknown) => value is A,
  valueFormat: string,
): Setting.Setting<Readonly<Record<string, A>>, Readonly<Record<string, A>>> =>
  Setting.refine(
    Setting.custom<Readonly<Record<string, A>>, object>(metadataFormat, asObject, other),
    (given, field) => {
      const entries: Array<readonly [name: string, value: A]> = []
      for (const [name, value] of Object.entries(given)) {
        if (entries.length === maxMetadata)
          return invalid(field, `must have at most ${maxMetadata} names`)
        if (!metadataNamePattern.test(name))
          return invalid(field, `must have names of ${nameFormat}: see entry ${entries.length + 1}`)
        if (!isValue(value)) return invalid(`${field}.${name}`, `must be ${valueFormat}`)
        entries.push([name, value])
      }
      return Result.succeed(sorted(entries))
    },
  )

const valueJson = { type: "string", pattern: metadataValuePattern.source }

const jsonOf = (value: Setting.JsonSchema): Setting.JsonSchema => ({
  type: "object",
  propertyNames: { pattern: metadataNamePattern.source },
  additionalProperties: value,
  maxProperties: maxMetadata,
})

/** An argument or a field with metadata. */
export const metadataSetting = Setting.inJson(
  entriesOf<string>(isText, textFormat),
  jsonOf(valueJson),
)

/** An argument or a field with a metadata change. */
export const metadataPatchSetting = Setting.inJson(
  entriesOf<string | null>(
    (value) => value === null || isText(value),
    `${textFormat}, or null to remove it`,
  ),
  jsonOf({ anyOf: [valueJson, { const: null }] }),
)

/** Changes metadata. Returns `undefined` if it would have too many names. */
export const applyMetadataPatch = (
  metadata: Metadata,
  patch: MetadataPatch,
): Metadata | undefined => {
  const kept = Object.entries(metadata).filter(([name]) => !Object.hasOwn(patch, name))
  const set = Object.entries(patch).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const],
  )
  const entries = [...kept, ...set]
  return entries.length > maxMetadata ? undefined : sorted(entries)
}

/** Returns metadata as JSON. Equal metadata has equal JSON. */
export const metadataJson = (metadata: Metadata): string => JSON.stringify(metadata)

/** Returns metadata from its JSON. */
export const metadataFromJson = (json: string): Metadata =>
  json === "{}"
    ? noMetadata
    : Result.getOrElse(metadataSetting.read(JSON.parse(json), ""), () => noMetadata)
