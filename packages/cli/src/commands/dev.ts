/** `tenure dev`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { usageFailure } from "../support/failure.ts"
import { dateFormat, parseDate, parseDuration } from "../support/flags.ts"
import { isoOf } from "../support/text.ts"
import type { ClockGoal } from "./dev-machine.ts"
import { readReading, readingFlags } from "./reading-flags.ts"

const folder = Argument.String("folder").pipe(
  Argument.withDescription("Keeps everything in a folder; without it, in memory until the end"),
  Argument.optional,
)

const standardPort = 3000

const isPort = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= 65_535

const expectedPort = "a port, from 0 to 65535"

const port = Flag.Int("port").pipe(
  Flag.filter(isPort, () => expectedPort),
  Flag.withDescription(
    `The port to listen on, as PORT: ${standardPort} by default; 0 takes a free one`,
  ),
  Flag.optional,
)

/** Returns the port from the flag or the environment. */
const readPort = Effect.fnUntraced(function* (given: Option.Option<number>) {
  if (Option.isSome(given)) return given.value
  const text = yield* Effect.orDie(Config.option(Config.NonEmptyString("PORT")))
  if (Option.isNone(text)) return standardPort
  const value = /^\d+$/.test(text.value) ? Number(text.value) : NaN
  return isPort(value) ? value : yield* usageFailure(`PORT must be ${expectedPort}.`)
})

const from = Flag.String("from").pipe(
  Flag.withMetavar("FILE"),
  Flag.withDescription(
    "Runs a copy of an exported project under a clock that you move; - for standard input",
  ),
  Flag.optional,
)

const day = 86_400_000

/** Returns when tomorrow begins in UTC. */
const beginOfTomorrow = (): string => isoOf((Math.floor(Date.now() / day) + 1) * day)

/** Reads a time, or a duration from the start of the copy. */
const parseTime = (text: string): Option.Option<ClockGoal> => {
  const duration = parseDuration(text)
  if (duration !== undefined) return Option.some({ duration })
  const date = text === "tomorrow" ? beginOfTomorrow() : parseDate(text)
  return date === undefined ? Option.none() : Option.some({ date })
}

const at = Flag.String("at").pipe(
  Flag.filterMap(parseTime, () => `a date, such as ${dateFormat}, or +30d or P30D from the start`),
  Flag.withMetavar("DATE"),
  Flag.withDescription("Lets the copy run until then at once, and says what happened"),
  Flag.optional,
)

const failing = /^([^=]+)=([345]\d\d)$/

const fail = Flag.String("fail").pipe(
  Flag.filterMap(
    (text) => {
      const [, host = "", status = ""] = failing.exec(text) ?? []
      return host === "" ? Option.none() : Option.some([host, Number(status)] as const)
    },
    () => "a host and a status from 300 to 599, such as shop.example=503",
  ),
  Flag.withMetavar("HOST=STATUS"),
  Flag.withDescription("Has the receivers of a host fail in the copy; may be repeated"),
  Flag.atLeast(0),
)

const onlyCopies = usageFailure("--at, --fail, --map and --dates are for a copy: add --from FILE.")

/** The command. */
export const devCommand = Command.make(
  "dev",
  { folder, port, from, at, fail, ...readingFlags },
  Effect.fnUntraced(function* ({ port: portGiven, ...given }) {
    const settings = { ...given, port: yield* readPort(portGiven) }
    if (Option.isSome(given.from)) {
      if (Option.isSome(given.folder))
        return yield* usageFailure("A copy is in memory: leave out the folder, or --from.")
      const { runTimeMachine } = yield* Effect.promise(() => import("./dev-machine.ts"))
      const reading = yield* readReading(given)
      return yield* runTimeMachine({ ...settings, from: given.from.value, reading })
    }
    const isForCopy = Option.isSome(given.at) || Option.isSome(given.dates)
    if (isForCopy || given.fail.length + given.map.length > 0) return yield* onlyCopies
    const { runDevServer: run } = yield* Effect.promise(() => import("./dev-server.ts"))
    return yield* run(settings)
  }),
).pipe(
  Command.withDescription(
    "Runs Tenure here to try it: the API, the console, and a receiver that prints verified events",
  ),
  Command.withExamples([
    { command: "tenure dev" },
    { command: "tenure dev ./data --port 4000" },
    {
      command: "tenure dev --from shop.ndjson --at +30d",
      description: "What the next month brings",
    },
  ]),
)
