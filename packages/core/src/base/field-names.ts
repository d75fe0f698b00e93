/**
 * Checks field names in method arguments. A method ignores unknown fields, because TypeScript allows
 * wider objects. But it refuses a misspelled field, such as `dry_run`, and a field known only to other
 * methods: the host would miss its protection.
 */

import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { InvalidInput } from "./errors.ts"
import { distanceOf } from "./misspelled.ts"
import type { RequestInput } from "./operation-input.ts"

/**
 * A field: `true`; or its name in the HTTP API, unless this is the same in snake case; or another name
 * with the right one in its place; or the fields in its objects. `false` marks a name such as `id`,
 * ignored by other methods.
 */
type Field = boolean | string | readonly [name: string, right: string] | Fields

/** An object's fields by name. */
export type Fields = { readonly [name: string]: Field }

type NamesIn<A> = A extends unknown ? keyof A & string : never

/** A type's fields, in all members if it is a union. */
export type FieldsOf<A> = { readonly [Name in NamesIn<NonNullable<A>>]: Field }

type FieldsByMethod = Readonly<Record<string, ReadonlyArray<Fields | null>>>

/** Returns a name's words in singular, in lower case and joined: the same for all spellings. */
const stemOf = (name: string): string =>
  name
    .replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1_$2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .map((word) => word.replace(/ies$/, "y").replace(/([^s])s$/, "$1"))
    .join("")

const sorted = (text: string): string => [...text].toSorted().join("")

/** Tells whether a name is probably misspelled. Few letters are near to many other words, unless two are swapped. */
const isNear = (stem: string, known: string): boolean => {
  if (Math.abs(stem.length - known.length) > 2) return false
  const distance = distanceOf(stem, known)
  return distance === 1 && sorted(stem) === sorted(known)
    ? true
    : known.length >= 5 && stem[0] === known[0] && distance <= (known.length < 8 ? 1 : 2)
}

/** The right field for a wrong name. */
interface Right {
  readonly name: string
  /** As errors write it. */
  readonly text: string
}

/** Returns the right names by stem. */
const rightsOf = (fields: Fields): ReadonlyMap<string, Right> =>
  new Map(
    Object.entries(fields).flatMap(([name, field]) => {
      const right = { name, text: JSON.stringify(name) }
      const own = [stemOf(name), right] as const
      if (typeof field === "string") return [own, [stemOf(field), right] as const]
      return Array.isArray(field)
        ? [own, [stemOf(field[0]), { name, text: field[1] }] as const]
        : [own]
    }),
  )

/** Returns a problem with a name in the object `given`. */
type Verdict = (given: object) => string | undefined

const harmless: Verdict = () => undefined

const textOf = (value: unknown): unknown => (typeof value === "number" ? String(value) : value)

/** Tells whether both fields say the same, as in `{ ...row, userId: String(row.user_id) }`. */
const saysSame = (given: object, one: string, other: string): boolean =>
  Object.hasOwn(given, other) &&
  textOf(Reflect.get(given, one)) === textOf(Reflect.get(given, other))

// Hosts pass objects in few shapes, so each name is judged once.
const maxVerdicts = 1000

const longestName = 100

/** Judges a name by other methods. The path leads to an object in the argument. */
type Elsewhere = (stem: string, path: string) => Verdict | undefined

/** Makes the function to judge the names in an object with these fields. */
const makeJudge = (
  fields: Fields,
  elsewhere: (stem: string) => Verdict | undefined,
): ((name: string) => Verdict) => {
  // One look-up for each name, whether it is known or has been looked at before.
  const verdicts = new Map(Object.keys(fields).map((name) => [name, harmless]))
  const most = verdicts.size + maxVerdicts

  const judge = (name: string): Verdict => {
    if (name.length > longestName) return harmless
    const rights = rightsOf(fields)
    const stem = stemOf(name)
    const right = rights.get(stem)
    if (right !== undefined)
      return (given) =>
        stemOf(right.name) === stem && saysSame(given, name, right.name)
          ? undefined
          : `must be written ${right.text}`
    const other = elsewhere(stem)
    if (other !== undefined) return other
    const near = [...rights].find(([known]) => isNear(stem, known))?.[1]
    if (near === undefined) return harmless
    // If the right one is there, too, this one is another: `project` beside `projectId`.
    return (given) => (Object.hasOwn(given, near.name) ? undefined : `must be written ${near.text}`)
  }

  return (name) => {
    const known = verdicts.get(name)
    if (known !== undefined) return known
    const verdict = judge(name)
    if (verdicts.size < most) verdicts.set(name, verdict)
    return verdict
  }
}

/** Returns a problem with the names in a value. Its own name in errors begins with the path. */
type CheckValue = (given: unknown, path: string) => InvalidInput | undefined

/**
 * Makes the check for an object.
 *
 * @param path - leads from the argument to the object; `""` for the argument itself
 */
const makeObjectCheck = (fields: Fields, elsewhere: Elsewhere, path: string): CheckValue => {
  const judge = makeJudge(fields, (stem) => elsewhere(stem, path))
  const inner = Object.entries(fields).flatMap(([name, field]) =>
    Predicate.isObject(field)
      ? [{ name, check: eachObject(makeObjectCheck(field, elsewhere, `${path}.${name}`)) }]
      : [],
  )
  const faultInside = (given: object, prefix: string): InvalidInput | undefined => {
    for (const { check, name } of inner) {
      const fault = check(Reflect.get(given, name), prefix + name)
      if (fault !== undefined) return fault
    }
    return undefined
  }
  return (given, prefix) => {
    if (!Predicate.isObject(given)) return undefined
    // Without an array for the names: this runs for each extension.
    for (const name in given) {
      const verdict = judge(name)
      if (verdict === harmless || !Object.hasOwn(given, name)) continue
      const problem = verdict(given)
      // A field without a value says nothing.
      if (problem !== undefined && Reflect.get(given, name) !== undefined)
        return new InvalidInput({ field: prefix + name, problem })
    }
    return inner.length === 0 ? undefined : faultInside(given, prefix)
  }
}

/** Makes the check for a field with an object, or with an array. */
const eachObject =
  (check: CheckValue): CheckValue =>
  (given, name) => {
    if (!Array.isArray(given)) return check(given, `${name}.`)
    for (let index = 0; index < given.length; index++) {
      const fault = check(given[index], `${name}[${index}].`)
      if (fault !== undefined) return fault
    }
    return undefined
  }

/** Returns a problem with the field names in a call's arguments. */
type Check = (args: ReadonlyArray<unknown>) => InvalidInput | undefined

const places = ["first", "second", "third"]

/** Makes the check for a method and the fields in its arguments. */
const makeCheck = (all: ReadonlyArray<Fields | null>, elsewhere: Elsewhere): Check => {
  const inOthers: Elsewhere = (stem, path) => {
    const place = all.findIndex((fields) => fields !== null && rightsOf(fields).has(stem))
    return path === "" && place !== -1
      ? () => `must be in the ${places[place]} argument`
      : elsewhere(stem, path)
  }
  const checks = all.map((fields) => fields && makeObjectCheck(fields, inOthers, ""))
  return (args) => {
    for (let index = 0; index < checks.length; index++) {
      const fault = checks[index]?.(args[index], "")
      if (fault !== undefined) return fault
    }
    return undefined
  }
}

/** Makes the check for an object outside arguments. */
export const makeNameCheck = (fields: Fields): ((given: object) => InvalidInput | undefined) => {
  const check = makeObjectCheck(fields, () => undefined, "")
  return (given) => check(given, "")
}

/**
 * Returns an input's fields.
 *
 * @param others - fields with further names, or outside the input
 */
export const namesOf = (
  { fields, path }: Pick<RequestInput<unknown, unknown>, "fields" | "path">,
  others: Fields = {},
): Fields => ({
  ...Object.fromEntries(Object.keys({ ...path, ...fields }).map((name) => [name, true])),
  ...others,
})

/** The methods on a noun. */
export interface Noun<Methods = FieldsByMethod> {
  readonly methods: Methods
  /**
   * Tells whether a method ignores another method's field, as in a returned membership:
   * `extend(membership)`.
   *
   * @param place - the method's name; with a dot, the object's field name
   */
  readonly ignores?: (place: string, field: string, given: object) => boolean
}

/** Makes a function to judge other methods' fields. */
const makeElsewhere =
  ({ ignores, methods }: Noun<FieldsByMethod>) =>
  (place: string, stem: string): Verdict | undefined => {
    const [first, ...others] = Object.entries(methods).flatMap(([method, args]) =>
      args.flatMap((fields) => {
        const right = fields === null ? undefined : rightsOf(fields).get(stem)
        return right === undefined || fields?.[right.name] === false ? [] : [{ method, ...right }]
      }),
    )
    if (first === undefined) return undefined
    const having = [first, ...others].map(({ method }) => method).join(", ")
    const problem = `must be left out: ${first.text} is for ${having}`
    return (given) => (ignores?.(place, first.name, given) === true ? undefined : problem)
  }

/** Makes the checks for methods. */
export const makeNameChecks = (noun: Noun<FieldsByMethod>): Readonly<Record<string, Check>> => {
  const elsewhere = makeElsewhere(noun)
  return Object.fromEntries(
    Object.entries(noun.methods).map(([method, args]) => [
      method,
      makeCheck(args, (stem, path) => elsewhere(method + path, stem)),
    ]),
  )
}

type Method = (...args: ReadonlyArray<never>) => Effect.Effect<unknown, unknown>

/** Checks arguments. If a getter throws, it throws again in the method. */
const faultOf = (check: Check, args: ReadonlyArray<unknown>): InvalidInput | undefined => {
  try {
    return check(args)
  } catch {
    return undefined
  }
}

// Not suspended: arguments are read when a method is called, and extensions are called most.
const checked =
  (check: Check, method: Method): Method =>
  (...args) => {
    const fault = faultOf(check, args)
    return fault === undefined ? method(...args) : Effect.fail(fault)
  }

/** Has a service's methods fail with `InvalidInput` if a field is named wrong. */
export function checkNames<Service extends object>(noun: Noun, service: Service): Service
export function checkNames(
  noun: Noun<FieldsByMethod>,
  service: Readonly<Record<string, Method>>,
): object {
  const checks = makeNameChecks(noun)
  return Object.fromEntries(
    Object.entries(service).map(([name, method]) => {
      const check = noun.methods[name]?.some((fields) => fields) ? checks[name] : undefined
      return [name, check === undefined ? method : checked(check, method)]
    }),
  )
}

/** An origin's fields. */
export const originFields = { requestId: true, keyId: true, traceparent: true } as const
