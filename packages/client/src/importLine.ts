/** A line of an import: a membership of a user. */
export interface ImportLine {
  /** The id of the user. */
  readonly user_id: string
  /** A date, which may be over: Unix time in milliseconds, or YYYY-MM-DDTHH:mm:ss.sssZ. */
  readonly end_date: number | string
}
