/** `tenure members ends`: how many memberships end on each day. */

import type { EndCounts } from "@tenure/client"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { callApi } from "../support/api.ts"
import {
  type GivenEnd,
  endFlag,
  requireOne,
  resolveDay,
  throughFlag,
} from "../support/end-dates.ts"
import { usageFailure } from "../support/failure.ts"
import { booleanFlag, durationFlag, projectFlag } from "../support/flags.ts"
import { printResult } from "../support/output.ts"
import { layOut, layOutOne } from "../support/text.ts"

const { getOrUndefined } = Option

const dayFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("DAY"),
    Flag.withDescription(`${description}, such as 2027-01-31`),
    Flag.optional,
  )

const from = dayFlag("from", "The first day in the project's time zone; by default, 14 days ago")

const to = dayFlag("to", "The last day; by default, in 45 days")

const extendBy = durationFlag(
  "extend-by",
  "Counts as if all members had this duration more, such as P3D or +3d",
)

const extend = endFlag("extend", "Counts as if all members had been extended to this date")

const through = throughFlag.pipe(
  Flag.withDescription("Counts as if all members had been extended through this day"),
)

const neverShorten = booleanFlag(
  "never-shorten",
  "With --extend or --through, leaves members that end later as they are",
)

/** Returns the part of a request that says to which date all members would be extended. */
const extensionOf = Effect.fnUntraced(function* (given: GivenEnd, project: string) {
  switch (given._tag) {
    case "Day":
      return { through: yield* resolveDay(given.day, { project, timeZone: Option.none() }) }
    case "Instant":
      return { extend: given.date }
    default:
      return yield* usageFailure("--extend must be a date.")
  }
})

const widest = 40

/** Returns a bar. A few members have at least a thin one. */
const barOf = (count: number, most: number): string => {
  const width = Math.round((count / Math.max(1, most)) * widest)
  return count > 0 && width === 0 ? "▏" : "█".repeat(width)
}

/** Lays out the counts: the figures, and a bar for each day. */
const layOutEnds = ({ at, days, ...figures }: EndCounts): ReadonlyArray<string> => {
  const most = Math.max(0, ...days.map(({ ends }) => ends))
  const rows = days.map(({ day, ends, extended }) => ({
    day: day === at.slice(0, day.length) ? `${day} today` : day,
    extended,
    ends,
  }))
  const [titles = "", ...lines] = layOut(rows, Infinity).lines
  const width = Math.max(titles.length, ...lines.map(({ length }) => length))
  const withBars = lines.map((line, index) =>
    `${line.padEnd(width)}  ${barOf(days[index]?.ends ?? 0, most)}`.trimEnd(),
  )
  return [...layOutOne({ at, ...figures }), "", titles, ...withBars]
}

/** The command. */
export const endsCommand = Command.make(
  "ends",
  { project: projectFlag, from, to, extendBy, extend, through, neverShorten },
  Effect.fnUntraced(function* (given) {
    const isDated = Option.isSome(given.extend) || Option.isSome(given.through)
    if (given.neverShorten && !isDated) {
      return yield* usageFailure("--never-shorten needs a date: add --extend or --through.")
    }
    const goal = isDated
      ? yield* extensionOf(
          yield* requireOne("Give either --extend or --through.", given.extend, given.through),
          given.project,
        )
      : {}
    const { data } = yield* callApi(({ memberships }, options) =>
      memberships.ends(
        {
          project_id: given.project,
          from: getOrUndefined(given.from),
          to: getOrUndefined(given.to),
          extend_by: getOrUndefined(given.extendBy),
          ...goal,
          mode: given.neverShorten ? "never_shorten" : undefined,
        },
        options,
      ),
    )
    yield* printResult(data, () => layOutEnds(data))
  }),
).pipe(
  Command.withDescription(
    "Shows how many memberships end on each day, and what an extension of all would change",
  ),
  Command.withExamples([
    { command: "tenure members ends --project shop" },
    { command: "tenure members ends --project shop --from 2027-01-01 --to 2027-01-31" },
    { command: "tenure members ends --project shop --extend-by P3D" },
  ]),
)
