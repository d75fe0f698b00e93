/** Why something has failed, in one line. */

// A chain of causes may be circular.
const maxLength = 8

/** The messages of an error and of its causes. */
const messagesOf = (error: unknown, room = maxLength): ReadonlyArray<string> => {
  if (room === 0 || error === undefined) return []
  if (!(error instanceof Error)) return [String(error)]
  const own = error.message.replace(/\.$/, "")
  return [own, ...messagesOf(error.cause, room - 1)]
}

/** Joins the messages of an error and of its causes, each of them once. */
export const reasonsOf = (error: unknown): string => [...new Set(messagesOf(error))].join(": ")
