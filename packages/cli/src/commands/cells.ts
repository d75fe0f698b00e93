/** `tenure cells`. */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { usageFailure } from "../support/failure.ts"
import { booleanFlag } from "../support/flags.ts"
import { jsonFlag, printDone, printItems } from "../support/output.ts"
import { resolveDatabase, targetFlags } from "../support/target.ts"

/** Loads the server operations, and reads the servers. */
const findServers = Effect.gen(function* () {
  const { schema, url } = yield* resolveDatabase
  const upkeep = yield* Effect.promise(() => import("./database-upkeep.ts"))
  const servers = yield* upkeep.serversOf(url)
  return servers === undefined
    ? yield* usageFailure("This takes several servers: servers: and the path of a file.")
    : { upkeep, servers, schema }
})

const cell = Argument.Int("cell").pipe(Argument.withDescription("The number of the cell"))

const server = Argument.String("server").pipe(
  Argument.withDescription("The name of the server that gets it"),
)

const cancel = booleanFlag("cancel", "Undoes a move that was interrupted before it was decided")

const move = Command.make(
  "move",
  { cell, server, cancel },
  Effect.fnUntraced(function* (given) {
    const { schema, servers, upkeep } = yield* findServers
    const { cell: number, server: to } = given
    if (given.cancel) {
      const cancelled = yield* upkeep.cancelCell(servers, schema, number, to)
      return yield* printDone(
        { cell: number, server: to, cancelled },
        cancelled ? `Cancelled: cell ${number} stays.` : `Cell ${number} does not move.`,
      )
    }
    const moved = yield* upkeep.moveCell(servers, schema, number, to)
    yield* printDone(
      { cell: number, server: to, moved },
      moved ? `Cell ${number} is on ${to}.` : `Cell ${number} is on ${to} already.`,
    )
  }),
).pipe(
  Command.withDescription(
    "Moves a cell while all processes go on. Can be repeated, whatever interrupts it",
  ),
  Command.withExamples([
    { command: "tenure cells move 3 second --database servers:./servers.json" },
    { command: "tenure cells move 3 second --cancel --database servers:./servers.json" },
  ]),
)

const dryRun = booleanFlag("dry-run", "Tells which cells would move, and moves none")

const rebalance = Command.make(
  "rebalance",
  { dryRun },
  Effect.fnUntraced(function* (given) {
    const { schema, servers, upkeep } = yield* findServers
    const planned = yield* upkeep.planCells(servers, schema)
    const moves = Stream.fromIterable(planned)
    yield* printItems(
      given.dryRun
        ? moves
        : Stream.tap(moves, ({ number, to }) => upkeep.moveCell(servers, schema, number, to)),
      ({ from, number, to }) => ({ cell: number, from, to }),
      "The cells are balanced: none has to move.",
    )
  }),
).pipe(
  Command.withDescription(
    "Moves as few cells as possible, one after the other, until servers differ by one cell at most",
  ),
  Command.withExamples([
    { command: "tenure cells rebalance --dry-run --database servers:./servers.json" },
  ]),
)

/** The command. */
export const cellsCommand = Command.make(
  "cells",
  {},
  Effect.fnUntraced(function* () {
    const { schema, servers, upkeep } = yield* findServers
    const found = yield* upkeep.listCells(servers, schema)
    yield* printItems(Stream.fromIterable(found), (state) => ({ ...state }))
  }),
).pipe(
  Command.withDescription("Lists the cells of several servers, and how far their moves are"),
  Command.withSubcommands([move, rebalance]),
  Command.withExamples([
    { command: "tenure cells --database servers:./servers.json" },
    ...move.examples,
  ]),
  Command.withGlobalFlags([jsonFlag, ...targetFlags]),
)
