/** The backend's log: one JSON line for each entry. */

const write = (level: "info" | "error", message: string, fields: object): void =>
  void process.stdout.write(`${JSON.stringify({ level, message, ...fields })}\n`)

/** Logs an event. */
export const info = (message: string, fields: object = {}): void => write("info", message, fields)

/** Logs an error. */
export const error = (message: string, cause: unknown): void =>
  write("error", message, { cause: String(cause) })
