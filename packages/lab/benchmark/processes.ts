/** Other processes: servers whose processor time is measured alone, and who keeps them busy. */

import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Answered, Load } from "./load-generator.ts"
import type { Contestant } from "./rounds.ts"
import { requests as requestsOfAll } from "./servers/workload.ts"

/** A process that answers each message with another. */
export interface Child {
  readonly ask: <Answer>(question: object) => Promise<Answer>
  readonly stop: () => void
}

/** Waits for the next message, or fails if the process ends without one. */
const nextMessage = <Message>(child: ChildProcess): Promise<Message> =>
  new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`a process ended with ${code}`))
    child.once("exit", ended)
    child.once("message", (message: Message) => {
      child.off("exit", ended)
      resolve(message)
    })
  })

const running = new Set<ChildProcess>()

/** Stops all processes that are still running, after a section has failed. */
export const stopAll = (): void => {
  for (const child of running) if (child.connected) child.disconnect()
}

/** Starts a module from this folder in a process. Also returns the first message that it sends. */
export const start = async <Greeting>(
  module: string,
  options: { readonly args?: ReadonlyArray<string>; readonly flags?: ReadonlyArray<string> } = {},
): Promise<Child & { readonly greeting: Greeting }> => {
  const { args = [], flags = [] } = options
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), args, {
    execArgv: ["-C", "@tenure/source", ...flags],
    // The usual setting in production.
    env: { ...process.env, NODE_ENV: "production" },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  })
  running.add(child)
  child.once("exit", () => running.delete(child))
  // Nobody reads a server's log, but it must not fill the pipe.
  child.stdout?.resume()
  const greeting = await nextMessage<Greeting>(child)
  return {
    greeting,
    ask: (question) => {
      child.send(question)
      return nextMessage(child)
    },
    stop: () => child.disconnect(),
  }
}

/** A server from the folder `servers`. */
export interface ServerProcess {
  readonly port: number
  /** Returns the microseconds on a processor so far. */
  readonly cpu: () => Promise<number>
  readonly stop: () => void
}

/** Starts a server by its name and its arguments. */
export const startServer = async (
  ...[name, ...args]: ReadonlyArray<string>
): Promise<ServerProcess> => {
  const { ask, greeting, stop } = await start<number>(`./servers/${name}.ts`, { args })
  return {
    port: greeting,
    stop,
    cpu: async () => {
      const { system, user } = await ask<NodeJS.CpuUsage>({})
      return system + user
    },
  }
}

/** Starts the process that keeps servers busy. */
export const startGenerator = (): Promise<Child> => start("./load-generator.ts")

/** Has the generator keep a server busy, which must not refuse anything. */
export const generate = async (generator: Child, load: Load, name: string): Promise<Answered> => {
  const answered = await generator.ask<Answered>(load)
  const { failures, firstFailure } = answered
  if (failures > 0) throw new Error(`${name} answered ${failures} times: ${firstFailure}`)
  return answered
}

/** A contestant that is asked over HTTP: throughput, and the server's processor time alone. */
export const overHttp = (
  name: string,
  server: ServerProcess,
  generator: Child,
  {
    connections = 64,
    requests = requestsOfAll(),
  }: Partial<Pick<Load, "connections" | "requests">> = {},
): Contestant => ({
  name,
  run: async (seconds) => {
    const before = await server.cpu()
    const load: Load = { port: server.port, connections, seconds, requests }
    const answered = await generate(generator, load, name)
    const { busy, responses } = answered
    const cpu = (await server.cpu()) - before
    const serverBusy = cpu / 1_000_000 / answered.seconds
    // Where the generator had more to do than the server, this measured the generator.
    if (busy > serverBusy) console.warn(`${name}: the load generator was the busier one`)
    return { rate: responses / answered.seconds, cpu: cpu / responses }
  },
})
