/** Timeouts that follow how long the database took to answer before: a slow network is no outage. */

/** What is known of the way to the database, in milliseconds. */
export interface RoundTripTime {
  /** How long a statement takes that costs the server nothing. */
  readonly roundTrip: number | undefined
  /** How long it takes to open a connection: several round trips, and the check of the password. */
  readonly opening: number | undefined
}

/** Before the first measurement. */
export const unknownRoundTrip: RoundTripTime = { roundTrip: undefined, opening: undefined }

/** The longest that a connection may take to open, and the database to answer on it. */
export const maxTimeoutMillis = 8000

const between = (least: number, millis: number): number =>
  Math.min(maxTimeoutMillis, Math.max(least, millis))

/** Rises at once, so that a slower way is not taken for an outage, and falls by and by. */
const follow = (known: number | undefined, measured: number): number =>
  known === undefined || measured > known ? measured : (known + measured) / 2

/** What is known after a measurement. */
export const updateRoundTrip = (
  known: RoundTripTime,
  measured: Partial<RoundTripTime>,
): RoundTripTime => ({
  roundTrip:
    measured.roundTrip === undefined
      ? known.roundTrip
      : follow(known.roundTrip, measured.roundTrip),
  opening: measured.opening === undefined ? known.opening : follow(known.opening, measured.opening),
})

/** What is known after any statement: a round trip takes no longer than that. */
export const capRoundTrip = (known: RoundTripTime, millis: number): RoundTripTime =>
  known.roundTrip === undefined || known.roundTrip <= millis
    ? known
    : { ...known, roundTrip: millis }

/** After how long without an answer a statement is overdue, which is a reason to ask the database. */
export const overdueAfterMillis = ({ roundTrip = 0 }: RoundTripTime): number =>
  between(500, 3 * roundTrip)

/** How long the answer to a question may take on an open connection. */
export const answerTimeoutMillis = ({ roundTrip = maxTimeoutMillis }: RoundTripTime): number =>
  between(250, 3 * roundTrip)

/** How long a connection may take to open. */
export const openTimeoutMillis = ({ opening = maxTimeoutMillis }: RoundTripTime): number =>
  between(1000, 3 * opening)
