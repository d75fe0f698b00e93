/** Whether there is somebody at a terminal. */

/** Whether somebody can be asked. */
export const isInteractive = (): boolean =>
  process.stdin.isTTY === true && process.stdout.isTTY === true
