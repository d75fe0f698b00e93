/**
 * A process that has many listeners to Server-Sent Events. It reads only as much as it must, so
 * that it is not the bottleneck.
 */

import { connect } from "node:net"
import { quantile } from "./rounds.ts"
import { announce } from "./servers/server.ts"

/** The connections to open. */
export interface Opening {
  readonly _tag: "Open"
  readonly port: number
  /** One request for each connection, as text whose characters are bytes. */
  readonly requests: ReadonlyArray<string>
}

/** How many connections are open. */
export interface Opened {
  readonly open: number
  readonly firstFailure: string | undefined
}

/** Waits until all connections together have had so many events since the last question. */
export interface Awaiting {
  readonly _tag: "Await"
  readonly events: number
}

/** What has come. */
export interface Arrived {
  /** Milliseconds from the call that published an event to its arrival, for one in a hundred. */
  readonly late: number
}

// So many connections are opened at a time.
const atATime = 100

const isEvent = (block: string): boolean => block.includes("\ndata:")

// From the call that published it.
const timestamp = /"timestamp":"([^"]+)"/

const delays: Array<number> = []
let received = 0
let awaited: { readonly events: number; readonly done: () => void } | undefined

const count = (block: string): void => {
  if (!isEvent(block)) return
  received++
  const [, at] = timestamp.exec(block) ?? []
  if (at !== undefined) delays.push(Date.now() - Date.parse(at))
  if (received === awaited?.events) awaited.done()
}

/** Opens a connection. Returns the response's head. */
const open = (port: number, request: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" })
    let rest = ""
    socket.setEncoding("latin1")
    socket.on("connect", () => socket.write(request, "latin1"))
    socket.on("error", reject)
    socket.on("data", (text: string) => {
      resolve(text)
      const blocks = (rest + text).split("\n\n")
      rest = blocks.pop() ?? ""
      for (const block of blocks) count(block)
    })
  })

const openAll = async ({ port, requests }: Opening): Promise<Opened> => {
  const heads: Array<string> = []
  for (let first = 0; first < requests.length; first += atATime) {
    const some = requests.slice(first, first + atATime)
    heads.push(...(await Promise.all(some.map((request) => open(port, request)))))
  }
  const failures = heads.filter((head) => !/^HTTP\/1.1 (200|101) /.test(head))
  return { open: heads.length - failures.length, firstFailure: failures[0] }
}

const arrive = async ({ events }: Awaiting): Promise<Arrived> => {
  if (received < events) await new Promise<void>((done) => (awaited = { events, done }))
  received -= events
  return { late: quantile(delays.splice(0), 0.99) }
}

announce("ready", (question: Opening | Awaiting) =>
  question._tag === "Open" ? openAll(question) : arrive(question),
)
