/** Node's `Temporal`, in a process of its own, because it is behind a flag. */

import { execFileSync } from "node:child_process"

/**
 * Evaluates an expression for each case.
 *
 * @param expression - JavaScript in which `zoned(at, zone)` is a `Temporal.ZonedDateTime`
 * @param parameters - names the items of a case in the expression
 */
export const askTemporal = (
  cases: ReadonlyArray<ReadonlyArray<number | string>>,
  parameters: string,
  expression: string,
): ReadonlyArray<unknown> => {
  const program = `
    const zoned = (at, zone) => Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone)
    const cases = JSON.parse(require("node:fs").readFileSync(0, "utf8"))
    process.stdout.write(JSON.stringify(cases.map(([${parameters}]) => ${expression})))`
  const answer: unknown = JSON.parse(
    execFileSync(process.execPath, ["--harmony-temporal", "-e", program], {
      encoding: "utf8",
      input: JSON.stringify(cases),
      maxBuffer: 10_000_000,
    }),
  )
  if (!Array.isArray(answer)) throw new Error("Temporal gave no answers")
  return answer
}
