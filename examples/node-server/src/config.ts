/** The server's settings, read from the environment. */

import * as Config from "effect/Config"
import * as IpNetwork from "effect/net/IpNetwork"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const split = (text: string): ReadonlyArray<string> =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")

/** Comma-separated values, each of which has to hold. */
const list = (name: string, expected: string, holds: (entry: string) => boolean) => {
  const entries = Schema.String.check(
    Schema.makeFilter((text: string) => {
      const wrong = split(text).find((entry) => !holds(entry))
      return wrong === undefined ? undefined : `"${wrong}" is no ${expected}`
    }),
  )
  return Config.schema(entries, name).pipe(Config.withDefault(""), Config.map(split))
}

const networks = (name: string) =>
  list(name, "network in CIDR notation, such as 10.0.0.0/8", (entry) =>
    Result.isSuccess(IpNetwork.fromString(entry)),
  )

const integer = (name: string, minimum: number, maximum: number, byDefault: number) =>
  Config.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })), name).pipe(
    Config.withDefault(byDefault),
  )

const limit = (name: string, byDefault: number) => integer(name, 1, 1_000_000_000, byDefault)

const basePath = Schema.String.check(
  Schema.makeFilter((text: string) =>
    /^(\/[^/?#\s]+)*\/?$/.test(text) ? undefined : `"${text}" is no path such as /api`,
  ),
)

const isSeconds = (entry: string): boolean =>
  /^[0-9]+(\.[0-9]+)?$/.test(entry) && Number(entry) <= 30 * 86_400

/** All settings. */
export const settings = Config.all({
  host: Config.NonEmptyString("HOST").pipe(Config.withDefault("127.0.0.1")),
  port: integer("PORT", 0, 65_535, 3000),
  basePath: Config.schema(basePath, "BASE_PATH").pipe(Config.withDefault("")),
  seedFile: Config.NonEmptyString("SEED_FILE").pipe(Config.withDefault(undefined)),
  perKey: limit("RATE_LIMIT_PER_KEY", 100),
  perAddress: limit("RATE_LIMIT_PER_IP", 300),
  burst: limit("RATE_LIMIT_BURST", 20),
  trustedProxies: networks("TRUSTED_PROXIES"),
  allowedNetworks: networks("WEBHOOK_ALLOWED_NETWORKS"),
  retrySchedule: list("WEBHOOK_RETRY_SCHEDULE", "number of seconds up to 30 days", isSeconds),
})

/** The values of all settings. */
export type Settings = Config.Success<typeof settings>
