/** Host transactions, in which stores can work. */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { TaggedError } from "./tagged-error.ts"
import type { ProjectId } from "./values.ts"

/** A statement's parameter. Other types are passed as text, such as `{"a","b"}` for an array. */
export type Param = string | number | boolean | null

/**
 * A host's connection to the stores' database, with an open transaction. A `pg` client is one;
 * `@tenure/postgres/within` makes one from other libraries' transactions.
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
 * A statement failed in the host's transaction. PostgreSQL accepts no others then, so roll back. If the
 * `code` is `40001` or `40P01`, the whole transaction can be tried again.
 */
export class TransactionFailed extends TaggedError("TransactionFailed")<{
  /** The SQLSTATE, or `undefined` if the database sent none. */
  readonly code: string | undefined
  /** The error from the host's library. */
  readonly cause: unknown
}> {
  override get message(): string {
    return `A statement failed in the transaction${this.code === undefined ? "" : ` (SQLSTATE ${this.code})`}.`
  }
}

/** No transaction is open on the host's connection, for example because it is a pool. Nothing was changed. */
export class NoTransaction extends TaggedError("NoTransaction") {
  override get message(): string {
    return "No transaction is open on the connection: begin one, and pass its client rather than a pool."
  }
}

/** The host's transaction is on another server than the project. Nothing was changed. */
export class WrongServer extends TaggedError("WrongServer")<{
  /** The name of the project's server. */
  readonly server: string
}> {
  override get message(): string {
    return `The project is on the server ${this.server}: open the transaction there.`
  }
}

/** The call would keep others from working until the transaction ends. Nothing was changed. */
export class NotInTransaction extends TaggedError("NotInTransaction") {
  override get message(): string {
    return "Deliveries cannot be cancelled in a transaction: claims would wait until it ends. Cancel before or after it."
  }
}

/** The stores cannot work in host transactions. */
export class TransactionsUnsupported extends TaggedError("TransactionsUnsupported") {
  override get message(): string {
    return "The stores cannot work in transactions of the host. postgres() of tenure/postgres can."
  }
}

/** Runs work in a host transaction. The host commits it or rolls it back. */
export type Join = <A, E, R>(
  work: Effect.Effect<A, E, R>,
) => Effect.Effect<A, E | TransactionFailed, R>

/**
 * The stores' ability to work in a transaction that the host opened with any library. The stores'
 * changes are then committed or rolled back together with the host's own rows.
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
     * Runs an effect once an event stored in the caller's transaction is committed: never after a
     * rollback; at once without a transaction.
     */
    readonly afterCommit: (
      event: { readonly id: string; readonly projectId: ProjectId },
      effect: Effect.Effect<void>,
    ) => Effect.Effect<void>
  }
>()("@tenure/core/Transactions") {}
