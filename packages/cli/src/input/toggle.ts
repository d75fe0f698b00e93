/** Flags that are off unless they are given. */

import * as Flag from "effect/cli/Flag"

/** Makes a flag that is off unless it is given. */
export const toggle = (name: string, description: string): Flag.Flag<boolean> =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(description),
    Flag.withoutNegation,
    Flag.withDefault(false),
  )
