/**
 * Whether the database responds, and each connection to it. During an outage, calls fail at once, both those in flight
 * and new ones. A dead connection is destroyed, and the next call replaces it.
 */

import { StoreUnavailable } from "@tenure/core/store"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { type SqlError, isSqlError } from "effect/sql/SqlError"
import { integersParam } from "../sql/values.ts"
import { type Connection, failOnLockTimeouts, within } from "./connection.ts"
import type { BusyConnections, Connections } from "./connections.ts"
import { isCrowded } from "./errors.ts"
import {
  answerTimeoutMillis,
  maxTimeoutMillis,
  openTimeoutMillis,
  overdueAfterMillis,
} from "./round-trip.ts"

/**
 * Returns whether the database refuses changes, as a standby does, and which server processes `$1` are
 * running a statement.
 */
const ping = `
  SELECT current_setting('transaction_read_only')::boolean AS read_only,
         ARRAY(
           SELECT asked.id FROM unnest($1::integer[]) AS asked (id)
           CROSS JOIN pg_stat_get_activity(asked.id) AS activity
           WHERE activity.state IS DISTINCT FROM 'idle'
         ) AS working
`

/** The row from `ping`. */
interface PingRow {
  readonly read_only: boolean
  readonly working: ReadonlyArray<number>
}

/** The response to a probe. */
export interface ProbeResult {
  /** Whether the database refuses changes. */
  readonly isReadOnly: boolean
  /** Which of the given processes are running a statement. */
  readonly working: ReadonlySet<number>
}

/** Checks whether the database responds, on a connection that serves nothing else. */
export interface HealthProbe {
  /** Asks which server processes are running a statement. Fails if there is no response in time. */
  readonly ask: (processIds: ReadonlyArray<number>) => Effect.Effect<ProbeResult, SqlError>
  /** Ends when the database responds, however long that takes. */
  readonly untilAnswered: (pauseMillis: number) => Effect.Effect<void>
}

/** The assumed result for a database that is up but does not report on its processes. */
const up = (processIds: ReadonlyArray<number>): ProbeResult => ({
  isReadOnly: false,
  working: new Set(processIds),
})

const makeHealthProbe = (connections: Connections): HealthProbe => {
  let standing: Connection | undefined

  const askOn = Effect.fnUntraced(function* (
    connection: Connection,
    processIds: ReadonlyArray<number>,
    millis: number,
  ) {
    if (connections.isInProcess) {
      standing = connection
      // A probe would wait for the open transaction, however long that takes.
      return up(processIds)
    }
    const began = performance.now()
    const question = connection.run<PingRow>(ping, [integersParam(processIds)])
    // Also measured on a timeout: the response would have taken longer, so the next one has more time.
    const [row] = yield* Effect.ensuring(
      within(millis, connection, connections.send(connection, question)),
      Effect.sync(() => connections.learn({ roundTrip: performance.now() - began })),
    )
    standing = connection
    return { isReadOnly: row?.read_only !== false, working: new Set(row?.working) }
  })

  /** Probes on a new connection. */
  const askAfresh = (processIds: ReadonlyArray<number>, millis: number) =>
    Effect.flatMap(connections.open(failOnLockTimeouts, millis), (connection) =>
      askOn(connection, processIds, millis),
    ).pipe(
      // A server that has too many connections is up.
      Effect.catchIf(isCrowded, () => Effect.succeed(up(processIds))),
    )

  return {
    ask: (processIds) =>
      Effect.suspend(() => {
        const latency = connections.latency()
        const afresh = askAfresh(processIds, openTimeoutMillis(latency))
        if (standing?.isOpen() !== true) return afresh
        return askOn(standing, processIds, answerTimeoutMillis(latency)).pipe(
          Effect.flatMap((result) =>
            result.isReadOnly && connections.leaveReadOnly() ? afresh : Effect.succeed(result),
          ),
          // Only this connection may have died.
          Effect.catchIf(isSqlError, () => afresh),
        )
      }),

    untilAnswered: (pauseMillis) =>
      Effect.gen(function* () {
        const answered = yield* Deferred.make<void>()
        const attempt = Effect.flatMap(askAfresh([], maxTimeoutMillis), () =>
          Deferred.succeed(answered, undefined),
        )
        const attempts = Effect.forever(
          Effect.andThen(Effect.forkChild(Effect.ignoreCause(attempt)), Effect.sleep(pauseMillis)),
        )
        yield* Effect.raceFirst(Deferred.await(answered), attempts)
      }),
  }
}

/** A connection whose statement was unknown to the server at the last probe. */
interface Suspect {
  readonly since: number
  readonly bytesRead: number
}

/** Finds connections that have died without an error, for example in a gateway that forgot them. */
export interface DeadConnectionDetector {
  /** The server processes whose statements are overdue. */
  readonly suspects: () => ReadonlyArray<number>
  /** Destroys dead connections, from the processes that are running a statement, and all idle connections with them. */
  readonly end: (working: ReadonlySet<number>) => void
}

const makeDeadConnectionDetector = (connections: Connections): DeadConnectionDetector => {
  let suspected = new Map<Connection, Suspect>()

  const overdue = (): ReadonlyArray<BusyConnections> => {
    const now = performance.now()
    const millis = overdueAfterMillis(connections.latency())
    return connections.busy().filter(({ since }) => now - since >= millis)
  }

  /** Whether a connection was suspected before, and nothing has arrived since. */
  const isSuspectedStill = ({ connection, since }: BusyConnections): boolean => {
    const before = suspected.get(connection)
    return before?.since === since && before.bytesRead === connection.bytesRead()
  }

  return {
    suspects: () => overdue().flatMap(({ connection: { processId } }) => processId ?? []),

    end: (working) => {
      const unknown = overdue().filter(
        // Behind a pooler, this cannot be known.
        ({ connection: { processId } }) => processId !== undefined && !working.has(processId),
      )
      // The response to a statement that has just ended may still be on its way.
      const silent = unknown.filter(isSuspectedStill)
      suspected = new Map(
        unknown.map(({ connection, since }) => [
          connection,
          { since, bytesRead: connection.bytesRead() },
        ]),
      )
      if (silent.length === 0) return
      for (const { connection } of silent) connection.destroy()
      // Idle connections have probably died, too, and nothing would notice it.
      connections.destroyIdle()
    },
  }
}

// How often calls in flight are checked.
const tickMillis = 100

// While the database does not respond, a new attempt starts this often, beside those that still wait.
const attemptMillis = 1000

/** Guards calls against a database that does not respond. */
export interface Health {
  /**
   * Runs a call in a new fiber, without the caller's context. Fails with `StoreUnavailable` as soon as the
   * database is known not to respond, or if the call exceeds the limit.
   */
  readonly guard: <A, E>(
    call: Effect.Effect<A, E>,
    limitMillis: number,
  ) => Effect.Effect<A, E | StoreUnavailable>
  /** Probes the database. Call it when a connection breaks. */
  readonly suspect: () => void
  /** Probes the database on a separate connection, and returns whether it refuses changes. */
  readonly isReadOnly: Effect.Effect<boolean, StoreUnavailable>
}

/** A call in flight. */
interface Call {
  readonly since: number
  readonly until: number
  readonly fail: (cause: unknown) => void
}

/** Watches a database for as long as the scope is open. Closes the connections. */
export const makeHealth = Effect.fnUntraced(function* (
  connections: Connections,
): Effect.fn.Return<Health, never, Scope.Scope> {
  const fork = Effect.runForkWith(yield* Effect.context())
  const probe = makeHealthProbe(connections)
  const detector = makeDeadConnectionDetector(connections)
  const calls = new Set<Call>()
  const working = new Set<Fiber.Fiber<unknown, unknown>>()
  let unavailable: StoreUnavailable | undefined
  let checking: Deferred.Deferred<boolean, StoreUnavailable> | undefined
  let isClosed = false

  /** Runs an effect that ends with the scope. */
  const start = <A, E>(
    effect: Effect.Effect<A, E>,
    done: (exit: Exit.Exit<A, E>) => void,
  ): void => {
    const fiber = fork(effect)
    working.add(fiber)
    fiber.addObserver((exit) => {
      working.delete(fiber)
      done(exit)
    })
  }

  const failAll = (cause: unknown): void => {
    for (const { fail } of calls) fail(cause)
  }

  /** Refuses all calls until the database responds. */
  const refuse = (cause: unknown): StoreUnavailable => {
    const refusal = new StoreUnavailable({ cause })
    if (isClosed) return refusal
    unavailable = refusal
    failAll(cause)
    connections.destroyAll()
    start(probe.untilAnswered(attemptMillis), () => {
      if (!isClosed) unavailable = undefined
    })
    return refusal
  }

  /** Decides from a probe whether the database responds, and destroys dead connections. */
  const decide = (
    exit: Exit.Exit<ProbeResult, unknown>,
    answeredBefore: number,
  ): Exit.Exit<boolean, StoreUnavailable> => {
    if (Exit.isSuccess(exit)) {
      detector.end(exit.value.working)
      return Exit.succeed(exit.value.isReadOnly)
    }
    const cause = Cause.squash(exit.cause)
    // Other statements got a response, so it is only slower than before.
    const isAlive = connections.answered() > answeredBefore
    return Exit.fail(isAlive ? new StoreUnavailable({ cause }) : refuse(cause))
  }

  /** Probes the database, or joins the probe that is under way. */
  const check = (): Deferred.Deferred<boolean, StoreUnavailable> => {
    if (checking !== undefined) return checking
    const asked = Deferred.makeUnsafe<boolean, StoreUnavailable>()
    checking = asked
    const answeredBefore = connections.answered()
    start(probe.ask(detector.suspects()), (exit) => {
      checking = undefined
      Deferred.doneUnsafe(asked, decide(exit, answeredBefore))
    })
    return asked
  }

  const suspect = (): void => {
    if (unavailable === undefined && !isClosed) check()
  }

  const tick = (): void => {
    const now = performance.now()
    const overdueMillis = overdueAfterMillis(connections.latency())
    let isOverdue = false
    for (const { fail, since, until } of calls) {
      if (now >= until) {
        fail("timeout")
        // Behind a pooler, a timeout is the only sign of dead connections.
        if (connections.isPooled()) connections.destroyIdle()
      } else if (now - since >= overdueMillis) isOverdue = true
    }
    if (isOverdue) suspect()
  }

  const guard: Health["guard"] = (call, limitMillis) =>
    Effect.callback((resume) => {
      if (unavailable !== undefined) return resume(Effect.fail(unavailable))
      const since = performance.now()
      const fiber = fork(call)
      // Does not wait for the interruption, which a dead server never acknowledges.
      const fail = (cause: unknown): void => {
        if (!calls.delete(entry)) return
        resume(Effect.fail(new StoreUnavailable({ cause })))
        fiber.interruptUnsafe()
      }
      const entry = { since, until: since + limitMillis, fail }
      calls.add(entry)
      fiber.addObserver((exit) => {
        if (calls.delete(entry)) resume(exit)
      })
      return Effect.sync(() => fiber.interruptUnsafe())
    })

  const close = Effect.sync(() => {
    isClosed = true
    unavailable = new StoreUnavailable({ cause: "closed" })
    failAll("closed")
    for (const fiber of working) fiber.interruptUnsafe()
    connections.close()
  })

  yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.sync(tick), tickMillis)))
  yield* Effect.addFinalizer(() => close)

  return {
    guard,
    suspect,
    isReadOnly: Effect.suspend(() =>
      unavailable === undefined ? Deferred.await(check()) : Effect.fail(unavailable),
    ),
  }
})
