/** What commands print: tables and sentences for people, or JSON for programs. */

import type { CallOptions, Client, List, Success } from "@tenure/client"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import { call, listed } from "../connection/Api.ts"
import { toggle } from "../input/toggle.ts"
import { printable, toJson } from "./printable.ts"
import { layOut, layOutOne, type Row } from "./table.ts"

/** The flag for programs. */
export const Json = GlobalFlag.Setting("json")({
  flag: toggle("json", "Prints JSON: one object, or one in each line for a list"),
})

/** Prints a value: as JSON, or as lines for people. */
export const print = Effect.fnUntraced(function* (
  value: unknown,
  lines: () => ReadonlyArray<string>,
) {
  yield* Console.log((yield* Json) ? toJson(value) : lines().join("\n"))
})

/** Prints what is known of one thing. */
export const record = <A extends object>(value: A, rowOf: (value: A) => Row) =>
  print(value, () => layOutOne(rowOf(value)))

/** Prints a sentence, or the data of the call. */
export const done = (data: unknown, sentence: string) => print(data, () => [printable(sentence)])

/** Calls an operation, and prints its data. */
export const callAndRecord = <A extends object>(
  operation: (client: Client, options: CallOptions) => Promise<Success<A>>,
  rowOf: (data: A) => Row,
) => Effect.flatMap(call(operation), ({ data }) => record(data, rowOf))

/** Calls an operation, and prints a sentence that says what it has done. */
export const callAndSay = <A>(
  operation: (client: Client, options: CallOptions) => Promise<Success<A>>,
  sentence: string | ((data: A) => string),
) =>
  Effect.flatMap(call(operation), ({ data }) =>
    done(data, typeof sentence === "string" ? sentence : sentence(data)),
  )

// What is laid out at once: the widths of the first rows hold for those that follow.
const rowsAtOnce = 1000

/** How wide a line may be: as wide as the terminal, if that is where it goes. */
const lineWidth = Effect.flatMap(Terminal.Terminal, ({ columns }) =>
  Effect.map(columns, (width) => (width === 0 ? Infinity : width)),
)

/** Prints a list as it arrives. */
export const items = Effect.fnUntraced(function* <A extends object, E, R>(
  stream: Stream.Stream<A, E, R>,
  rowOf: (item: A) => Row,
) {
  const isJson = yield* Json
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
export const list = <A extends object>(
  operation: (client: Client) => List<A>,
  rowOf: (item: A) => Row,
) => items(listed(operation), rowOf)
