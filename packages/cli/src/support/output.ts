/** What commands print: tables and sentences for people, or JSON for programs. */

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
import { type Row, layOut, layOutOne, printable, toJson } from "./text.ts"

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

/** Prints what is known of one thing. */
export const printRecord = <A extends object>(value: A, rowOf: (value: A) => Row) =>
  printResult(value, () => layOutOne(rowOf(value)))

/** Prints a sentence, or the data of the call. */
export const printDone = (data: unknown, sentence: string) =>
  printResult(data, () => [printable(sentence)])

/** Calls an operation, and prints its data. */
export const callAndPrintRecord = <A extends object>(
  operation: (client: Client, options: CallOptions) => Promise<Success<A>>,
  rowOf: (data: A) => Row,
) => Effect.flatMap(callApi(operation), ({ data }) => printRecord(data, rowOf))

/** Calls an operation, and prints a sentence that says what it has done. */
export const callAndPrintDone = <A>(
  operation: (client: Client, options: CallOptions) => Promise<Success<A>>,
  sentence: string | ((data: A) => string),
) =>
  Effect.flatMap(callApi(operation), ({ data }) =>
    printDone(data, typeof sentence === "string" ? sentence : sentence(data)),
  )

// What is laid out at once: the widths of the first rows hold for those that follow.
const rowsAtOnce = 1000

/** How wide a line may be: as wide as the terminal, if that is where it goes. */
const lineWidth = Effect.flatMap(Terminal.Terminal, ({ columns }) =>
  Effect.map(columns, (width) => (width === 0 ? Infinity : width)),
)

/** Prints a list as it arrives. */
export const printItems = Effect.fnUntraced(function* <A extends object, E, R>(
  stream: Stream.Stream<A, E, R>,
  rowOf: (item: A) => Row,
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
  if (!isJson && widths === undefined) yield* Console.log("There are none.")
})

/** Requests a paged list, and prints it. */
export const printList = <A extends object>(
  operation: (client: Client) => PageList<A>,
  rowOf: (item: A) => Row,
) => printItems(listed(operation), rowOf)

/** Rows of the audit trail. */

type Change = Omit<AuditRow, "user_id" | "subject">

/** A change of something in a line: from what to what, by whom and why. */
export const changeOf = ({ action, at, from, key_id, key_name, reason, to }: Change) => ({
  at,
  action,
  from,
  to,
  by: key_name ?? key_id,
  reason,
})

/** Commands that use the API. */

/** Adds the API to a command and its subcommands, with the flags that say where it is. */
export const connected = <const Name extends string, Input, E, R, ContextInput>(
  command: Command.Command<Name, Input, ContextInput, E, R>,
) => command.pipe(Command.provide(Api.layer), Command.withGlobalFlags([jsonFlag, ...targetFlags]))
