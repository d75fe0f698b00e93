/** Reads the body of a web request. */

import { type ArrivedBody, brokenOff, tooLarge } from "@tenure/core/ApiRequest"

const concat = (chunks: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const [only] = chunks
  if (only !== undefined && chunks.length === 1) return only
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}

const read = async (stream: ReadableStream<Uint8Array>, limit: number): Promise<ArrivedBody> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  // Leaving the loop cancels the stream.
  for await (const chunk of stream) {
    length += chunk.length
    if (length > limit) return tooLarge
    chunks.push(chunk)
  }
  return { _tag: "Bytes", bytes: concat(chunks, length) }
}

/** Reads a stream up to a limit in bytes. */
export const readStream = (
  stream: ReadableStream<Uint8Array>,
  limit: number,
): Promise<ArrivedBody> => read(stream, limit).catch(() => brokenOff)

/** Reads the body of a request at once. */
export const readWhole = (request: Request): Promise<ArrivedBody> =>
  request.arrayBuffer().then(
    (buffer): ArrivedBody => ({ _tag: "Bytes", bytes: new Uint8Array(buffer) }),
    () => brokenOff,
  )
