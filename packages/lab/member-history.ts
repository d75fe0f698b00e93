/**
 * Single memberships' histories, written as JSON lines: what clients asked for and what they were told, without
 * anything that only the stores know. A linearizability checker, such as Porcupine, needs no more.
 */

import { appendFileSync } from "node:fs"

/** What concerns a membership. */
export type Ask =
  /** A grant or an import: sets the date, also without a membership. */
  | { readonly do: "set"; readonly date: number }
  /** Sets a membership's date, if it is the expected one. */
  | { readonly do: "extend"; readonly date: number; readonly expects?: number | undefined }
  /** Ends a membership. */
  | { readonly do: "end" }
  /** The same, and succeeds without a membership, too. */
  | { readonly do: "erase" }
  /** A bulk extension: sets a date, never an earlier one, or adds milliseconds. */
  | {
      readonly do: "extendAll"
      readonly id: string
      readonly date?: number | undefined
      readonly neverShorten?: boolean | undefined
      readonly by?: number | undefined
    }
  /** Undoes a bulk extension. */
  | { readonly do: "undo"; readonly id: string }
  | { readonly do: "read" }

/** What a client was told: the date that was found, if it was not the expected one, too. */
export type Told =
  | { readonly answer: "done" | "none" | "unknown" }
  | { readonly answer: "found"; readonly found: number }

/** What a client was told who found a date, or no membership. */
export const found = (date: number | undefined): Told =>
  date === undefined ? { answer: "none" } : { answer: "found", found: date }

/** An operation, with its times in milliseconds. */
export type MemberOperation = Ask &
  Told & {
    readonly client: string
    readonly call: number
    /** `null` if nobody knows when, and whether, it took effect. */
    readonly return: number | null
  }

export interface MemberHistory {
  /** The run: its kind, its seed, and how it was broken. */
  readonly run: string
  readonly project: string
  readonly user: string
  /** Whether this package's checks find nothing wrong with this membership. */
  readonly sound: boolean
  readonly operations: ReadonlyArray<MemberOperation>
}

/** Appends histories to a file. */
export const appendHistories = (file: string, histories: ReadonlyArray<MemberHistory>): void =>
  appendFileSync(file, histories.map((history) => `${JSON.stringify(history)}\n`).join(""))
