/** An event in a line. */

import { printable } from "../output/printable.ts"

/** Writes an event as a line: when, what, and with which data. */
export const lineOfEvent = ({
  data,
  timestamp,
  type,
}: {
  readonly data: unknown
  readonly timestamp: string
  readonly type: string
}): string => printable(`${timestamp}  ${type}  ${JSON.stringify(data)}`)
