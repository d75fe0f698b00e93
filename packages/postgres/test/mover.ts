/** A program that moves the project p1, and stops at a point of the move, where a test can kill it. */

import { PgClient } from "@effect/sql-pg"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { runMoveProject } from "../src/ops/upkeep.ts"

const [, , from = "", to = "", last = ""] = process.argv

const client = (url: string) =>
  Effect.map(
    Layer.build(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    Context.get(PgClient.PgClient),
  )

/** Tells the test, and waits to be killed, if this is the point. */
const stopAt = (point: string): Effect.Effect<void> =>
  point === last
    ? Effect.andThen(
        Effect.sync(() => process.send?.(point)),
        Effect.never,
      )
    : Effect.void

/** The same in the midst of a copy, which is told of its progress but cannot be suspended by that. */
const blockAt = (point: string): void => {
  if (point !== last) return
  process.send?.(point)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

await Effect.gen(function* () {
  const [source, target] = [yield* client(from), yield* client(to)]
  const onProgress = () => blockAt("being copied")
  yield* runMoveProject({
    source,
    target,
    schema: undefined,
    projectId: "p1",
    onProgress,
    onStep: stopAt,
  })
}).pipe(Effect.scoped, Effect.runPromise)
