/** The services' doc comments name the errors that their methods' promises reject with. */

import * as Tenure from "@tenure/core"
import { apiErrors } from "@tenure/core/internal"
import { expect, it } from "vitest"
import { read } from "./examples.ts"
import { modules } from "./modules.ts"

const services = [
  "memberships/memberships",
  "webhooks/webhooks",
  "keys/api-keys",
  "webhooks/published-events",
].map((name) => [name, read(`packages/core/src/${name}.ts`)] as const)

// A service's doc comment with the word after it, and a method's with its type.
const service =
  /\/\*\*((?:(?!\*\/).)*)\*\/\s*export class \w+ extends Context\.Service<(.*?)\n>\(\)/gs
const method = /\/\*\*((?:(?!\*\/).)*)\*\/\s*readonly (\w+): ((?:(?!\n\n|\n {4}\/\*\*).)*)/gs

const classes = modules
  .filter((path) => path.startsWith("packages/core/src/"))
  .flatMap((path) => [...read(path).matchAll(/^export class (\w+) extends TaggedError\(/gm)])
  .map(([, name = ""]) => name)

const error = new RegExp(`\\b(?:${classes.join("|")})\\b`, "g")

/** A type's errors; `Failure` stands for those that every method has. */
const errorsOf = (type: string): ReadonlyArray<string> => [
  // The argument `idempotencyKey` tells its own.
  ...(type.replace("IdempotencyConflict", "").match(error) ?? []),
  ...(/\bFailure\b/.test(type) ? ["InvalidInput", "StoreUnavailable"] : []),
]

const methods = services.flatMap(([name, source]) =>
  [...source.matchAll(service)].flatMap(([, ofAll = "", body = ""]) =>
    [...body.matchAll(method)].map(
      ([, comment = "", called = "", type = ""]) =>
        [`${name}.${called}`, `${ofAll}${comment}`, errorsOf(type)] as const,
    ),
  ),
)

it("every service has methods with errors", () => {
  expect(methods.length).toBeGreaterThan(20)
})

it.each(methods)("%s", (_name, comment, errors) => {
  expect(errors.filter((one) => !comment.includes(`\`${one}\``))).toEqual([])
})

it("hosts can import the classes of all errors that clients see", () => {
  const seen = classes.filter((name) => Object.hasOwn(apiErrors, name))
  expect(seen.length).toBeGreaterThan(10)
  expect(seen.filter((name) => !Object.hasOwn(Tenure, name))).toEqual([])
})

// In a sentence: service and module names stand alone.
const ownPackage = /["'`][^"'`\n]* @tenure\/[^"'`\n]*["'`]/

it("messages name what users install, and not the packages that it consists of", () => {
  const lines = modules.flatMap((path) => read(path).split("\n"))
  const code = lines.filter((line) => !/^ *(\*|\/\*|\/\/)/.test(line))
  expect(code.length).toBeGreaterThan(10_000)
  expect(code.filter((line) => ownPackage.test(line))).toEqual([])
})
