/** Whether the database runs in this process. */

import * as Context from "effect/Context"

/**
 * Whether the database runs in this process, as that of `@tenure/embedded` does. Then it answers for as
 * long as the process lives, and no other process has to be told of anything. Default: `false`.
 */
export const InProcess = Context.Reference<boolean>("@tenure/postgres/InProcess", {
  defaultValue: () => false,
})
