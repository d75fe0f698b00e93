/** Prints tables and sentences for people, or JSON for programs. */

import type { AuditRow, CallOptions, Client, PageList, Success } from "@tenure/client"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import { Api, callApi, listed } from "./api.ts"
import { booleanFlag } from "./flags.ts"
import { targetFlags } from "./target.ts"
import { type Row, endText, layOut, layOutOne, printable, toJson } from "./text.ts"

/** The flag for programs. */
export const jsonFlag = GlobalFlag.Setting("json")({
  flag: booleanFlag("json", "Prints JSON: one object, or one in each line for a list"),
})

/** Prints a value: as JSON, or as lines for people. */
export const printResult = Effect.fnUntraced(function* (
  value: unknown,
  lines: () => ReadonlyArray<string>,
) {
  yield* Console.log((yield* jsonFlag) ? toJson(value) : lines().join("\n"))
})

/** Prints one object's fields. */
export const printRecord = <A extends object>(value: A, rowOf: (value: A) => Row) =>
  printResult(value, () => layOutOne(rowOf(value)))

/** Prints a sentence, or the call's data. */
export const printDone = (data: unknown, sentence: string) =>
  printResult(data, () => [printable(sentence)])

/** Calls an operation, and prints its data. */
export const callAndPrintRecord = <A extends object>(
  operation: (client: Client, options: CallOptions) => Promise<Success<A>>,
  rowOf: (data: A) => Row,
) => Effect.flatMap(callApi(operation), ({ data }) => printRecord(data, rowOf))

/** Calls an operation and prints a sentence about its effect. */
export const callAndPrintDone = <A>(
  operation: (client: Client, options: CallOptions) => Promise<Success<A>>,
  sentence: string | ((data: A) => string),
) =>
  Effect.flatMap(callApi(operation), ({ data }) =>
    printDone(data, typeof sentence === "string" ? sentence : sentence(data)),
  )

// Rows laid out together: the first rows' column widths also apply to later ones.
const rowsAtOnce = 1000

/** A line's maximum width: the terminal's, if output goes there. */
const lineWidth = Effect.flatMap(Terminal.Terminal, ({ columns }) =>
  Effect.map(columns, (width) => (width === 0 ? Infinity : width)),
)

/**
 * Prints a list as it arrives.
 *
 * @param none - what is printed in place of an empty table
 */
export const printItems = Effect.fnUntraced(function* <A extends object, E, R>(
  stream: Stream.Stream<A, E, R>,
  rowOf: (item: A) => Row,
  none = "There are none.",
) {
  const isJson = yield* jsonFlag
  const width = yield* lineWidth
  let widths: ReadonlyArray<number> | undefined
  const linesOf = (page: ReadonlyArray<A>): ReadonlyArray<string> => {
    if (isJson) return page.map(toJson)
    const table = layOut(page.map(rowOf), width, widths)
    widths = table.widths
    return table.lines
  }
  yield* stream.pipe(
    Stream.grouped(rowsAtOnce),
    Stream.runForEach((page) => Console.log(linesOf(page).join("\n"))),
  )
  if (!isJson && widths === undefined) yield* Console.log(none)
})

/** Requests a paged list, and prints it. */
export const printList = <A extends object>(
  operation: (client: Client) => PageList<A>,
  rowOf: (item: A) => Row,
) => printItems(listed(operation), rowOf)

type Change = Omit<AuditRow, "user_id" | "subject" | "changes">

/** Prints a change on one line: old and new value, author and reason. */
export const changeOf = ({ action, at, from, key_id, key_name, reason, to }: Change) => ({
  at,
  action,
  from: from && endText(from),
  to: to && endText(to),
  by: key_name ?? key_id,
  reason,
})

/** Adds the API to a command and its subcommands, with flags for its location. */
export const connected = <const Name extends string, Input, E, R, ContextInput>(
  command: Command.Command<Name, Input, ContextInput, E, R>,
) => command.pipe(Command.provide(Api.layer), Command.withGlobalFlags([jsonFlag, ...targetFlags]))
