/** How deliveries are sent when the host asks for it, rather than by themselves. */

import * as Setting from "../base/Setting.ts"

/** The options of `flush`. */
export const options = Setting.struct({
  /** How long to send. Default: `"10 seconds"`. */
  timeout: Setting.withDefault(Setting.millis({ least: 0 }), "10 seconds"),
})

/** The options as a host passes them. */
export interface Options extends Setting.Input<typeof options> {}
