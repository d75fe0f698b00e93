/** Timeouts that follow how long the database took to answer before: a slow network is no outage. */

/** What was measured on the way to the database, in milliseconds. */
export interface RoundTripTime {
  /** The duration of a statement that costs the server nothing. */
  readonly roundTrip: number | undefined
  /** The time to open a connection: several round trips, and the password check. */
  readonly opening: number | undefined
}

/** The value before the first measurement. */
export const unknownRoundTrip: RoundTripTime = { roundTrip: undefined, opening: undefined }

/** The longest time that a connection may take to open, and the database to respond on it. */
export const maxTimeoutMillis = 8000

const between = (least: number, millis: number): number =>
  Math.min(maxTimeoutMillis, Math.max(least, millis))

/** Rises at once, so that a slower network is not taken for an outage, and falls gradually. */
const follow = (known: number | undefined, measured: number): number =>
  known === undefined || measured > known ? measured : (known + measured) / 2

/** Adds a measurement. */
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

/** Lowers the round-trip time after a statement that was faster: a round trip takes no longer than the statement. */
export const capRoundTrip = (known: RoundTripTime, millis: number): RoundTripTime =>
  known.roundTrip === undefined || known.roundTrip <= millis
    ? known
    : { ...known, roundTrip: millis }

/** After this time without a response, a statement is overdue, and the database is probed. */
export const overdueAfterMillis = ({ roundTrip = 0 }: RoundTripTime): number =>
  between(500, 3 * roundTrip)

/** How long a probe may take on an open connection. */
export const answerTimeoutMillis = ({ roundTrip = maxTimeoutMillis }: RoundTripTime): number =>
  between(250, 3 * roundTrip)

/** How long a connection may take to open. */
export const openTimeoutMillis = ({ opening = maxTimeoutMillis }: RoundTripTime): number =>
  between(1000, 3 * opening)
