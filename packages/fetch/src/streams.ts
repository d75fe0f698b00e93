/** Sends the streams of responses. */

// How long a client may take to read a text. Longer ones are about 64 KiB.
const patienceMillis = 60_000

/**
 * Converts the stream of a response. It takes the next text when the one before was sent, ends the stream
 * when the client has gone, and breaks off when nobody takes a text for a minute.
 */
export const toWebStream = (texts: AsyncIterable<string>): ReadableStream<Uint8Array> => {
  const iterator = texts[Symbol.asyncIterator]()
  const utf8 = new TextEncoder()
  let patience: ReturnType<typeof setTimeout> | undefined

  return new ReadableStream(
    {
      pull: async (controller) => {
        clearTimeout(patience)
        const { done, value } = await iterator.next()
        if (done === true) return controller.close()
        controller.enqueue(utf8.encode(value))
        patience = setTimeout(() => {
          controller.error(new Error("The client does not read."))
          void iterator.return?.()
        }, patienceMillis)
      },
      cancel: async () => {
        clearTimeout(patience)
        await iterator.return?.()
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  )
}
