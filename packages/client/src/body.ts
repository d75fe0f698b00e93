/** The bodies of responses. */

/** Iterates over the chunks of a stream, which not every runtime does by itself. */
export const chunksOf = (stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> => {
  const reader = stream.getReader()
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const { done, value } = await reader.read()
        return done ? { done, value: undefined } : { done, value }
      },
      return: async () => {
        await reader.cancel()
        return { done: true, value: undefined }
      },
    }),
  }
}

/** Reads a body, or returns `undefined` if it is longer than `limit` bytes. */
export const read = async (response: Response, limit: number): Promise<string | undefined> => {
  if (response.body === null) return ""
  const decoder = new TextDecoder()
  let text = ""
  let length = 0
  for await (const chunk of chunksOf(response.body)) {
    length += chunk.length
    if (length > limit) return undefined
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}
