/** The server's settings, read from the environment. */

import type { InvalidInput } from "@tenure/core/InvalidInput"
import * as Keyring from "@tenure/core/Keyring"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { StartError } from "./StartError.ts"

const split = (text: string): ReadonlyArray<string> =>
  text.trim() === "" ? [] : text.split(",").map((entry) => entry.trim())

const list = (name: string) => Config.String(name).pipe(Config.withDefault(""), Config.map(split))

const isNumber = (text: string): boolean => /^[0-9]+(\.[0-9]+)?$/.test(text)

/** Numbers of seconds, separated by commas. */
const seconds = (name: string) => {
  const numbers = Schema.String.check(
    Schema.makeFilter((text: string) => {
      const wrong = split(text).find((entry) => !isNumber(entry))
      return wrong === undefined ? undefined : `"${wrong}" is not a number of seconds`
    }),
  )
  return Config.schema(numbers, name).pipe(
    Config.withDefault(""),
    Config.map((text) => split(text).map((entry) => Duration.seconds(Number(entry)))),
  )
}

const integer = (name: string, minimum: number, maximum: number, byDefault: number) =>
  Config.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })), name).pipe(
    Config.withDefault(byDefault),
  )

const limit = (name: string, byDefault: number) => integer(name, 1, 1_000_000_000, byDefault)

/** All settings. */
export const settings = Config.all({
  host: Config.NonEmptyString("HOST").pipe(Config.withDefault("127.0.0.1")),
  port: integer("PORT", 0, 65_535, 3000),
  basePath: Config.String("BASE_PATH").pipe(Config.withDefault("")),
  databaseUrl: Config.NonEmptyString("DATABASE_URL").pipe(Config.withDefault(undefined)),
  seedFile: Config.NonEmptyString("SEED_FILE").pipe(Config.withDefault(undefined)),
  perKey: limit("RATE_LIMIT_PER_KEY", 100),
  perAddress: limit("RATE_LIMIT_PER_IP", 300),
  burst: limit("RATE_LIMIT_BURST", 20),
  trustedProxies: list("TRUSTED_PROXIES"),
  allowedNetworks: list("WEBHOOK_ALLOWED_NETWORKS"),
  retrySchedule: seconds("WEBHOOK_RETRY_SCHEDULE"),
})

// Tenure checks these itself, and reports the names of its options.
const variables: Readonly<Record<string, string>> = {
  basePath: "BASE_PATH",
  trustedProxies: "TRUSTED_PROXIES",
  url: "DATABASE_URL",
  "webhooks.allowedNetworks": "WEBHOOK_ALLOWED_NETWORKS",
  "webhooks.retrySchedule": "WEBHOOK_RETRY_SCHEDULE",
}

/** Names the variable in place of the option that Tenure refused. */
export const fromInvalidInput = ({ field, problem }: InvalidInput): StartError => {
  const option = field.replace(/\[\d+\]$/, "")
  return new StartError({ message: `${variables[option] ?? field} ${problem}` })
}

/**
 * The keys that encrypt the secrets of webhooks, if the variable is set. `Config` reads an empty variable
 * as missing, which would turn encryption off. The error does not show the keys.
 */
export const encryption: Effect.Effect<Keyring.Given | undefined, StartError> = Effect.suspend(
  () => {
    const text = process.env["TENURE_ENCRYPTION_KEY"]
    if (text === undefined) return Effect.succeed(undefined)
    const keys = Keyring.fromText(text)
    const message = `TENURE_ENCRYPTION_KEY must be ${Keyring.expectedText}`
    return keys === undefined ? Effect.fail(new StartError({ message })) : Effect.succeed(keys)
  },
)

/** The values of all settings. */
export type Settings = Config.Success<typeof settings>
