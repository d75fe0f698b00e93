/** The harness's own clock. */

/** The time in milliseconds since the epoch, which never goes backwards. */
export const now = (): number => performance.timeOrigin + performance.now()
