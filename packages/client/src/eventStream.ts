/** Reads an event stream (HTML, 9.2.6) piece by piece. */

/** What precedes a blank line. */
export interface Frame {
  readonly event: string
  /** `undefined` if the frame has none. */
  readonly data: string | undefined
  /** The last id that the stream has had until here. */
  readonly id: string | undefined
  /** How long to wait before coming again, in milliseconds, if the frame says it. */
  readonly retry: number | undefined
}

const lineEnd = /\r\n|\r|\n/

// A line without a colon is a name alone. Without a name, it is a comment.
const field = /^([^:]*):? ?([^]*)$/

/** Collects the fields of frames. Returns a frame at its end. */
const collector = () => {
  let id: string | undefined
  let event = ""
  let data: Array<string> = []
  let retry: number | undefined

  const finish = (): Frame => {
    const text = data.length === 0 ? undefined : data.join("\n")
    const frame = { event: event || "message", data: text, id, retry }
    event = ""
    data = []
    retry = undefined
    return frame
  }

  return (line: string): ReadonlyArray<Frame> => {
    if (line === "") return [finish()]
    const [, name, value = ""] = field.exec(line) ?? []
    if (name === "data") data.push(value)
    if (name === "event") event = value
    if (name === "id" && !value.includes("\0")) id = value
    if (name === "retry" && /^\d+$/.test(value)) retry = Number(value)
    return []
  }
}

/** Makes a function that takes the text of a stream in pieces of any size, and returns the frames that end there. */
export const makeParser = (): ((text: string) => ReadonlyArray<Frame>) => {
  const collect = collector()
  let begun = ""
  let endsWithReturn = false
  return (text) => {
    // The line feed ends the line that the carriage return has ended.
    const isSecondHalf = endsWithReturn && text.startsWith("\n")
    if (text !== "") endsWithReturn = text.endsWith("\r")
    const [first = "", ...lines] = (isSecondHalf ? text.slice(1) : text).split(lineEnd)
    lines.unshift(begun + first)
    begun = lines.pop() ?? ""
    return lines.flatMap(collect)
  }
}
