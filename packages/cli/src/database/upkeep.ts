/** What `tenure migrate`, `export` and `import` do. */

import { PgClient } from "@effect/sql-pg/PgClient"
import * as Keyring from "@tenure/core/Keyring"
import { migrate as migrateAll, rewriteSecrets } from "@tenure/postgres"
import * as Upkeep from "@tenure/postgres/bin/upkeep"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import { failed, usage } from "../Failure.ts"
import * as Progress from "../output/Progress.ts"
import { connect, explain } from "./database.ts"

/** What to do beside the migrations. */
interface Given {
  readonly dryRun: boolean
  readonly encrypt: boolean
  readonly decrypt: boolean
}

/** Reads the keys. The servers, which have the same ones, must not write secrets the other way. */
const readKeys = Effect.fnUntraced(function* (isEncrypting: boolean) {
  const text = yield* Effect.mapError(Config.NonEmptyString("TENURE_ENCRYPTION_KEY"), () =>
    usage(`TENURE_ENCRYPTION_KEY must be ${Keyring.expectedText}.`),
  )
  const keys = Keyring.fromText(text)
  if (keys === undefined)
    return yield* usage(`TENURE_ENCRYPTION_KEY must be ${Keyring.expectedText}.`)
  if ((keys.current === undefined) === isEncrypting)
    return yield* usage(
      `TENURE_ENCRYPTION_KEY must begin with ${isEncrypting ? "the key that encrypts" : "plain"}.`,
    )
  return keys
})

const rewrite = Effect.fnUntraced(function* (schema: string | undefined, isEncrypting: boolean) {
  const encryption = yield* readKeys(isEncrypting)
  const { changed, problems } = yield* rewriteSecrets({ schema, encryption })
  if (problems.length > 0)
    return yield* failed(
      `${problems.join("; ")}. Rewritten: ${changed}. Failed: ${problems.length}.`,
    )
  return changed
})

/** Applies migrations, or tells which ones would be applied, and rewrites secrets. */
export const migrate = Effect.fnUntraced(function* (
  url: string,
  schema: string | undefined,
  { decrypt, dryRun, encrypt }: Given,
) {
  const client = yield* connect(url)
  return yield* Effect.gen(function* () {
    if (dryRun) return { applied: false, migrations: yield* Upkeep.pending(schema) }
    const migrations = yield* migrateAll({ schema })
    if (!encrypt && !decrypt) return { applied: true, migrations }
    return { applied: true, migrations, rewritten_secrets: yield* rewrite(schema, encrypt) }
  }).pipe(Effect.provideService(PgClient, client), Effect.mapError(explain))
}, Effect.scoped)

/** Copies everything from one database to another, and returns the number of rows of each table. */
export const move = Effect.fnUntraced(function* (
  from: string,
  to: string,
  schema: string | undefined,
) {
  const source = yield* connect(from)
  const target = yield* connect(to)
  const display = Progress.make(process.stderr, "rows")
  const start = yield* Clock.currentTimeMillis
  const clock = yield* Clock.Clock
  const rows = yield* Upkeep.move(source, target, schema, ({ of, rows: done }) =>
    display.show({ done, of, items: done, millis: clock.currentTimeMillisUnsafe() - start }),
  ).pipe(Effect.ensuring(Effect.sync(display.end)), Effect.mapError(explain))
  return Object.fromEntries(rows)
}, Effect.scoped)
