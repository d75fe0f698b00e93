/** The time as the server has it: this browser's, or that of a development server's own clock. */

let offset = 0

/** Returns the time, in milliseconds. */
export const now = (): number => Date.now() + offset

/** Returns the day at a time in a time zone, or in UTC if this browser does not know that. */
export const dayIn = (timeZone: string, millis: number): string => {
  try {
    // Swedes write days as ISO does.
    return new Intl.DateTimeFormat("sv", { timeZone }).format(millis)
  } catch {
    return dayIn("UTC", millis)
  }
}

/** Sets the time, in milliseconds. */
const setNow = (millis: number): void => {
  offset = millis - Date.now()
}

const address = document.querySelector<HTMLMetaElement>('meta[name="tenure-clock"]')?.content

/** Whether the server has a clock to move. */
export const hasClock = address !== undefined

/** The server's clock. */
export interface ServerClock {
  readonly now: string
  readonly start: string
  /** The next event. */
  readonly next: { readonly at: string; readonly what: string } | null
  readonly playing: boolean
}

/** How to move the clock. */
export type Move =
  | { readonly to: string }
  | { readonly play: { readonly days: number; readonly seconds: number } }
  | { readonly pause: true }
  | { readonly step: true }

/** Asks for the clock, or moves it. */
export const askClock = async (signal: AbortSignal, move?: Move): Promise<ServerClock> => {
  const response = await fetch(new URL(address ?? "", location.href), {
    signal,
    method: move === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json" },
    ...(move !== undefined && { body: JSON.stringify(move) }),
  })
  const answer: ServerClock & { readonly error?: string } = await response.json()
  if (answer.error !== undefined) throw new Error(answer.error)
  setNow(Date.parse(answer.now))
  return answer
}
