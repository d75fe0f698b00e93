/** One direction in a connection, which a fault can hold, slow down or silence. */

import type { Socket } from "node:net"

/** How bytes pass at the moment. */
export interface Weather {
  /** Whether bytes wait until this ends. */
  isStalled: boolean
  /** How long bytes are on their way, in milliseconds. */
  delayMillis: number
  /** How many bytes pass in a second. */
  bytesPerSecond: number
}

/** How bytes pass while all is well. */
export const fair = (): Weather => ({
  isStalled: false,
  delayMillis: 0,
  bytesPerSecond: Infinity,
})

export interface Pipe {
  /** Has bytes that were held go on, once the weather has changed. */
  readonly resume: () => void
  /** From now on, drops all bytes. */
  readonly silence: () => void
}

const maxWaitingBytes = 2 ** 20

/** Carries what one socket receives to another one. */
export const pipe = (from: Socket, to: Socket, weather: Weather): Pipe => {
  const queue: Array<{ readonly chunk: Buffer | undefined; readonly due: number }> = []
  let waitingBytes = 0
  let isSilent = false
  let freeAt = 0
  let timer: NodeJS.Timeout | undefined

  /** The stream's end is an entry without a chunk. */
  const add = (chunk: Buffer | undefined): void => {
    const start = Math.max(performance.now() + weather.delayMillis, freeAt)
    freeAt = start + (1000 * (chunk?.length ?? 0)) / weather.bytesPerSecond
    queue.push({ chunk, due: freeAt })
    waitingBytes += chunk?.length ?? 0
    if (waitingBytes > maxWaitingBytes) from.pause()
    pass()
  }

  const pass = (): void => {
    clearTimeout(timer)
    timer = undefined
    for (let next = queue[0]; next !== undefined && !weather.isStalled; next = queue[0]) {
      const wait = next.due - performance.now()
      if (wait > 0) {
        timer = setTimeout(pass, wait)
        return
      }
      queue.shift()
      waitingBytes -= next.chunk?.length ?? 0
      if (next.chunk === undefined) to.end()
      else to.write(next.chunk)
    }
    if (!isSilent) from.resume()
  }

  from.on("data", (chunk: Buffer) => {
    if (!isSilent) add(chunk)
  })
  from.on("end", () => {
    if (!isSilent) add(undefined)
  })
  from.on("close", () => clearTimeout(timer))
  return {
    resume: pass,
    silence: () => {
      isSilent = true
      queue.length = 0
      clearTimeout(timer)
    },
  }
}
