/** Reads answers from a connection's bytes. */

/** An answer as received. */
export interface Answer {
  readonly status: number
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The answers in the bytes so far. */
export interface Parsed {
  readonly answers: ReadonlyArray<Answer>
  /** What follows the last complete answer. */
  readonly rest: Buffer
}

const parseHead = (head: string): Omit<Answer, "body"> => {
  const [statusLine = "", ...lines] = head.split("\r\n")
  const headers = lines.map((line) => {
    const colon = line.indexOf(":")
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  const [, status = "0"] = /^HTTP\/1\.1 (\d{3})( |$)/.exec(statusLine) ?? []
  return { status: Number(status), headers: Object.fromEntries(headers) }
}

interface Extent {
  readonly body: Buffer
  readonly end: number
}

/** Joins a body's chunks. Returns `undefined` if it is not complete. */
const readChunks = (bytes: Buffer, start: number): Extent | undefined => {
  const chunks: Array<Buffer> = []
  for (let position = start; ;) {
    const lineEnd = bytes.indexOf("\r\n", position)
    if (lineEnd === -1) return undefined
    const length = Number.parseInt(bytes.toString("latin1", position, lineEnd), 16)
    const end = lineEnd + 2 + length + 2
    if (!(bytes.length >= end)) return undefined
    if (length === 0) return { body: Buffer.concat(chunks), end }
    chunks.push(bytes.subarray(lineEnd + 2, end - 2))
    position = end
  }
}

const readBody = (
  { headers, status }: Omit<Answer, "body">,
  method: string | undefined,
  bytes: Buffer,
  start: number,
  isClosed: boolean,
): Extent | undefined => {
  if (method === "HEAD" || status < 200 || status === 204 || status === 304) {
    return { body: Buffer.alloc(0), end: start }
  }
  if (headers["transfer-encoding"] === "chunked") return readChunks(bytes, start)
  const length = headers["content-length"]
  if (length === undefined && !isClosed) return undefined
  const end = length === undefined ? bytes.length : start + Number(length)
  return bytes.length < end ? undefined : { body: bytes.subarray(start, end), end }
}

/**
 * Parses the answers in some bytes, without the informational ones.
 *
 * @param methods - each request's method, because an answer to HEAD has no body
 * @param isClosed - whether the server has closed the connection, which ends a body without a length
 */
export const parseAnswers = (
  bytes: Buffer,
  methods: ReadonlyArray<string>,
  isClosed: boolean,
): Parsed => {
  const answers: Array<Answer> = []
  let position = 0
  while (position < bytes.length) {
    const headEnd = bytes.indexOf("\r\n\r\n", position)
    if (headEnd === -1) break
    const head = parseHead(bytes.toString("latin1", position, headEnd))
    const extent = readBody(head, methods[answers.length], bytes, headEnd + 4, isClosed)
    if (extent === undefined) break
    if (head.status >= 200 || head.status === 0) {
      answers.push({ ...head, body: extent.body.toString() })
    }
    position = extent.end
  }
  return { answers, rest: bytes.subarray(position) }
}
