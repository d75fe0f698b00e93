/** The backend's own log: a line of JSON for each entry. */

const write = (level: "info" | "error", message: string, fields: object): void =>
  void process.stdout.write(`${JSON.stringify({ level, message, ...fields })}\n`)

/** Logs that something happened. */
export const info = (message: string, fields: object = {}): void => write("info", message, fields)

/** Logs that something went wrong, and why. */
export const error = (message: string, cause: unknown): void =>
  write("error", message, { cause: String(cause) })
