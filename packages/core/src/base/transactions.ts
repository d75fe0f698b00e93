/** Transactions of the host, in which stores can work. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { TaggedError } from "./tagged-error.ts"
import type { ProjectId } from "./values.ts"

/** A parameter of a statement. Those of other types are text, such as `{"a","b"}` for an array. */
export type Param = string | number | boolean | null

/**
 * A connection of the host to the database of the stores, on which the host has opened a transaction. A
 * client of `pg` is one; `@tenure/postgres/within` makes one of a transaction of other libraries.
 */
export interface Connection {
  /**
   * Runs a statement with the parameters `$1`, `$2` and so on. Rejects with an error whose `code` is the
   * SQLSTATE.
   */
  query(
    statement: string,
    params: Array<Param>,
  ): PromiseLike<{
    /** The rows, as objects by column. */
    readonly rows: ReadonlyArray<object>
  }>
}

/**
 * A statement failed in the transaction of the host. PostgreSQL accepts no others then, so roll back. If
 * the `code` is `40001` or `40P01`, all of the transaction can be tried again.
 */
export class TransactionFailed extends TaggedError("TransactionFailed")<{
  /** The SQLSTATE, or `undefined` if the database sent none. */
  readonly code: string | undefined
  /** The error of the host's library. */
  readonly cause: unknown
}> {
  override get message(): string {
    return `A statement failed in the transaction${this.code === undefined ? "" : ` (SQLSTATE ${this.code})`}.`
  }
}

/** No transaction is open on the connection of the host, for example because it is a pool. Nothing was changed. */
export class NoTransaction extends TaggedError("NoTransaction") {
  override get message(): string {
    return "No transaction is open on the connection: begin one, and pass its client rather than a pool."
  }
}

/** The transaction of the host is on another server than the project. Nothing was changed. */
export class WrongServer extends TaggedError("WrongServer")<{
  /** The name of the server that has the project. */
  readonly server: string
}> {
  override get message(): string {
    return `The project is on the server ${this.server}: open the transaction there.`
  }
}

/** The stores cannot work in transactions of the host. */
export class TransactionsUnsupported extends TaggedError("TransactionsUnsupported") {
  override get message(): string {
    return "The stores cannot work in transactions of the host. postgres() of tenure/postgres can."
  }
}

/** Runs work in a transaction of the host, which the host commits or rolls back. */
export type Join = <A, E, R>(
  work: Effect.Effect<A, E, R>,
) => Effect.Effect<A, E | TransactionFailed, R>

/**
 * The ability of stores to work in a transaction that the host has opened with a library of its choice.
 * What the stores change is then committed or rolled back together with the host's own rows.
 */
export class Transactions extends Context.Service<
  Transactions,
  {
    /**
     * Returns a function for one transaction. The work dies with `NoTransaction` if none is open on the
     * connection, and with `WrongServer` if it is on another server than the project, before it changes
     * anything.
     */
    readonly within: (connection: Connection) => Join
    /**
     * Runs an effect once an event is committed that was stored in the caller's transaction: never, if it
     * is rolled back; at once, if there is no transaction.
     */
    readonly afterCommit: (
      event: { readonly id: string; readonly projectId: ProjectId },
      effect: Effect.Effect<void>,
    ) => Effect.Effect<void>
  }
>()("@tenure/core/Transactions") {}
