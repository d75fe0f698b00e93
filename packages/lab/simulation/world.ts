/** A seed's world: the stores' server, processes, receivers, and the networks between them. */

import type { ApiRequest } from "@tenure/core/adapter"
import { tenureLayer } from "@tenure/core/effect"
import { Handler } from "@tenure/core/internal"
import { verifySignature, WebhookSecret } from "@tenure/core/signature"
import { type OutboxChange, type StorePorts, WebhookId } from "@tenure/core/store"
import {
  type TransportError,
  type TransportRequest,
  WebhookTransport,
} from "@tenure/core/transport"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { type Random, random } from "../faults/random.ts"
import { makeGlobals } from "./globals.ts"
import { type HttpNetwork, makeFetch, makeHttp } from "./http.ts"
import { type Loop, type Machine, beginning, makeLoop } from "./loop.ts"
import type { Database } from "./postgres.ts"
import type { Notes, Told } from "./record.ts"
import type { Sabotage } from "./sabotages.ts"
import { type News, type StoreServer, makeNews, remoteStores } from "./stores.ts"
import { type Trouble, type Weather, calm, well } from "./weather.ts"

/** An answer over HTTP. */
export interface HttpAnswer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** The world. */
export interface World {
  readonly seed: number
  readonly loop: Loop
  readonly choose: Random
  readonly notes: Notes
  readonly sabotage: Sabotage | undefined
  /** When the run ends, in true time. */
  readonly endsAt: number
  /** What happened, if it is told. */
  readonly told: ReadonlyArray<Told>
  /** The machine for all clients. */
  readonly clients: Machine
  readonly server: StoreServer
  /** Sends clients' requests to the processes. */
  readonly fetch: typeof globalThis.fetch
  /** Sends a request to a process. Returns `undefined` if no answer arrives. */
  readonly request: (request: ApiRequest) => Effect.Effect<HttpAnswer | undefined>
  /** The processes' machines, by their numbers. */
  readonly processes: () => ReadonlyArray<Machine>
  /** Ends a process at once. It starts again within seconds. */
  readonly crash: (process: number) => void
  /** Has the stores' server answer, or not. */
  readonly setServer: (isUp: boolean) => void
  /** Sets a clock forward, or back. */
  readonly setClock: (machine: Machine, byMillis: number) => void
  /** Starts what has crashed, and has nothing fail any more. */
  readonly heal: () => void
  readonly isHealed: () => boolean
}

// So that a delivery is attempted as often as its receiver needs, and given up within the run.
const retrySchedule = ["1 second", "5 seconds", "20 seconds", "1 minute", "2 minutes"] as const

/** What the stores have done for a process, in one step. */
export interface StoreOperation {
  readonly method: string
  readonly args: ReadonlyArray<unknown>
  readonly value: unknown
  /** By the store's clock that nobody sets, in whole milliseconds. */
  readonly tick: number
}

/** How a run is watched, and what is broken in it. */
export interface WorldOptions {
  /** Whether to tell what happens. Default: `false`. */
  readonly isTold?: boolean
  readonly sabotage?: Sabotage
  /** What has the stores. By default, they are in memory. */
  readonly database?: Database
  /** Called when the stores have done something. */
  readonly onOperation?: (operation: StoreOperation) => void
}

/** How often a delivery is attempted at most. */
export const maxAttempts = retrySchedule.length + 1

/** How long before its end a membership is announced, in seconds. */
export const reminderSeconds = 10

/** How long announcements are held that a change of many sets off. */
export const holdMillis = 15_000

// Longer than all delays between attempts together, and than the longest lease.
const drainMillis = 900_000

const timeoutMillis = 5000

/** How long a client waits for an answer. */
const patienceMillis = 10_000

interface Process {
  readonly machine: Machine
  readonly news: News
  /** `undefined` while it starts. */
  handler: Handler["Service"] | undefined
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isObject(value)

/** Whether a store has changed nothing, because it knows the idempotency key. */
const isReplayed = (value: unknown): boolean => isRecord(value) && value["_tag"] === "Replayed"

const parse = (text: string): Readonly<Record<string, unknown>> => {
  const value: unknown = text === "" ? {} : JSON.parse(text)
  return isRecord(value) ? value : {}
}

/** The webhook's secret is only known to whoever has created it. */
const isSigned = (notes: Notes, request: TransportRequest, now: number): boolean => {
  const { secret } = notes.webhooks.find(({ url }) => url === request.url) ?? {}
  if (secret === undefined) return true
  const notification = { headers: request.headers, body: request.body, now, toleranceSeconds: 8000 }
  return Result.isSuccess(verifySignature(notification, [WebhookSecret(secret)]))
}

const changes = new Set([
  "grant",
  "extend",
  "extendAll",
  "undoBulkExtension",
  "pause",
  "resume",
  "end",
])

const idOf = (event: unknown): ReadonlyArray<string> =>
  isRecord(event) && typeof event["id"] === "string" ? [event["id"]] : []

/** Returns the ids of the events that a call has stored. */
const eventsOf = (
  method: string,
  args: ReadonlyArray<unknown>,
  value: unknown,
): ReadonlyArray<string> => {
  if (method === "publish") return value === undefined ? idOf(args[0]) : []
  if (!isRecord(value)) return []
  if (method === "sweep") return Array.isArray(value["events"]) ? value["events"].flatMap(idOf) : []
  if (!changes.has(method)) return []
  return "event" in value ? idOf(value["event"]) : idOf(value)
}

/** Loads what processes load when they start, so that this takes no time in the simulation. */
export const load = (): Promise<unknown> =>
  Effect.runPromise(Effect.scoped(Layer.build(Layer.provide(tenureLayer(), memory()))))

/** Makes stores in memory. */
const inMemory = ({ services }: Machine): Context.Context<StorePorts> => {
  const built = Effect.runSyncExitWith(services)(Layer.buildWithScope(memory(), Scope.makeUnsafe()))
  if (Exit.isFailure(built)) throw new Error("The stores do not start.")
  return built.value
}

// A database does not say when something is due. Often enough to find it, and rarely enough not to take long.
const databasePause = 10_000

/**
 * Makes a seed's world.
 *
 * @param databaseStores - the database's stores, if there is one
 */
export const makeWorld = (
  seed: number,
  weather: Weather,
  notes: Notes,
  { database, isTold = false, onOperation, sabotage }: WorldOptions,
  databaseStores?: Context.Context<StorePorts>,
): World => {
  const choose = random(seed, "world")
  const loop = makeLoop(choose, database && databasePause)
  if (database !== undefined) notes.longestPause = databasePause
  const told: Array<Told> = []
  let isHealed = false
  let isServerUp = true
  // A database limits by its wall clock, so this time has passed there.
  let forwardMillis = 0

  const tell = (who: string, what: string, isTrouble = false): void => {
    if (isTrouble) notes.troubles.push(loop.now())
    if (isTold) told.push({ at: loop.now(), who, what })
  }

  const rate = (): number => 1 + (choose.chance(0.5) ? choose.between(-1, 1) * weather.drift : 0)

  const serverMachine = loop.machine("store", rate(), undefined, random(seed, "store"))
  database?.setClock(serverMachine)
  const sabotageChoices = random(seed, "sabotage")
  const broken = (sound: Context.Context<StorePorts>): Context.Context<StorePorts> =>
    sabotage?.stores?.(sound, sabotageChoices) ?? sound
  let stores = broken(databaseStores ?? inMemory(serverMachine))
  const server: StoreServer = {
    machine: serverMachine,
    stores: () => stores,
    isUp: () => isServerUp,
    run: (effect, done) => {
      if (database === undefined) done(Effect.runSyncExitWith(serverMachine.services)(effect))
      else loop.wait(database.run(effect).then(done))
    },
  }
  const clients = loop.machine("clients", 1)
  loop.useGlobals(makeGlobals(loop, clients, random(seed, "globals")))
  const processes: Array<Process> = []

  const trouble = (of: Trouble): Trouble => (isHealed ? calm : of)

  const network = {
    loop,
    choose,
    trouble: () => trouble(weather.store),
    tell,
    done: (
      method: string,
      args: ReadonlyArray<unknown>,
      exit: Exit.Exit<unknown, unknown>,
    ): void => {
      tell("store", `${method}${Exit.isSuccess(exit) ? "" : " fails"}`)
      if (Exit.isFailure(exit)) return
      onOperation?.({ method, args, value: exit.value, tick: serverMachine.tick() })
      const isChange = noteChange(method, args, exit.value)
      const isRemoval = method === "remove"
      if (!isRemoval && !isChange) return
      const change: OutboxChange = isRemoval
        ? { _tag: "Stopped", webhookId: WebhookId(String(args[1])) }
        : { _tag: "Due" }
      for (const { machine, news } of processes) {
        loop.after(choose.between(0, 20), () => {
          machine.poll()
          news.tell(change)
        })
      }
    },
  }

  /** Records what the stores have done. Returns whether there are new events. */
  const noteChange = (method: string, args: ReadonlyArray<unknown>, value: unknown): boolean => {
    if (method === "take" && isRecord(value) && value["admitted"] === true)
      notes.takes.push(loop.now() + forwardMillis)
    if (method === "add" && isRecord(args[0]) && "url" in args[0]) {
      notes.created.set(String(args[0]["id"]), loop.now())
    }
    if (method === "updateProject" && isRecord(args[0]) && !isReplayed(value)) {
      const { projectId, settings } = args[0]
      const graceMillis = Number(isRecord(settings) ? settings["grace"] : undefined)
      const { length: commits } = notes.commits
      notes.graces.push({ projectId: String(projectId), graceMillis, at: loop.now(), commits })
    }
    if (method === "watch" && typeof value === "number") notes.watchedSince.push(value)
    if (method === "remove") notes.deleted.set(String(args[1]), loop.now())
    const events = eventsOf(method, args, value)
    for (const eventId of events) {
      notes.commits.push({ eventId, at: loop.now(), storeMillis: serverMachine.wallMillis() })
    }
    return events.length > 0
  }

  /** Receives a notification. Returns the status that the receiver answers, if it does. */
  const receive = (
    request: TransportRequest,
    sentAt: number,
    process: Machine,
  ): number | undefined => {
    const { hanging, refused } = isHealed ? well : weather.receivers
    const isHanging = choose.chance(hanging)
    const status = choose.chance(refused) ? choose.pick([500, 503, 429]) : 204
    notes.arrivals.push({
      url: request.url,
      eventId: request.headers["webhook-id"] ?? "",
      headers: request.headers,
      body: request.body,
      wallMillis: process.wallMillis(),
      sentAt,
      at: loop.now(),
      isVerified: isSigned(notes, request, process.wallMillis()),
      isAccepted: status === 204 && !isHanging,
      isHeard: false,
    })
    tell(
      "receiver",
      `${request.url} ${request.headers["webhook-id"] ?? ""} ${isHanging ? "hangs" : status}`,
    )
    return isHanging ? undefined : status
  }

  const send = (process: Machine, request: TransportRequest) =>
    Effect.callback<{ status: number; retryAfter: undefined; body: string }, TransportError>(
      (resume) => {
        const { delay, doubled, lost, unanswered } = trouble(weather.receivers)
        const sentAt = loop.now()
        let isWaiting = true
        const end = (status: number): void => {
          if (!isWaiting || !process.isUp()) return
          isWaiting = false
          process.schedule(() =>
            resume(Effect.succeed({ status, retryAfter: undefined, body: "" })),
          )
        }
        const arrive = (): void => {
          const place = notes.arrivals.length
          const status = receive(request, sentAt, process)
          if (status === undefined || choose.chance(unanswered)) return
          loop.after(choose.between(...delay), () => {
            const arrival = notes.arrivals[place]
            if (arrival !== undefined && isWaiting && process.isUp()) arrival.isHeard = true
            end(status)
          })
        }
        if (!choose.chance(lost)) {
          loop.after(choose.between(...delay), arrive)
          if (choose.chance(doubled)) loop.after(choose.between(...delay), arrive)
        }
        return Effect.sync(() => {
          isWaiting = false
        })
      },
    )

  const transportOf = (process: Machine) =>
    Layer.succeed(WebhookTransport, {
      sendsHttpToNames: true,
      send: (request) => send(process, request),
    })

  const { limit } = weather
  const perKey = { limit: limit ?? 1_000_000, window: "1 minute" } as const

  /** Starts a process. */
  const start = (number: number): void => {
    const machine = loop.machine(`process ${number}`, rate(), serverMachine)
    const news = makeNews(machine)
    const process: Process = { machine, news, handler: undefined }
    processes[number] = process
    const settings = tenureLayer({
      transport: transportOf(machine),
      webhooks: { retrySchedule, timeout: timeoutMillis },
      expiry: { reminders: [`${reminderSeconds} seconds`], holdAfterBulk: holdMillis },
      rateLimits: {
        perKey,
        perAddress: false,
        burst: { limit: limit ?? 1_000_000, window: "1 minute" },
        suspension: false,
        onStoreFailure: "closed",
      },
      docs: false,
    })
    const services = Layer.provide(
      settings,
      Layer.succeedContext(remoteStores(network, server, machine, news)),
    )
    const own = Effect.map(Layer.buildWithScope(services, Scope.makeUnsafe()), (all) =>
      Context.get(all, Handler),
    )
    loop.loads()
    machine.schedule(() =>
      Effect.runCallbackWith(machine.services)(own, {
        onExit: (exit) => {
          if (Exit.isSuccess(exit)) process.handler = exit.value
          tell(machine.name, Exit.isSuccess(exit) ? "has started" : `does not start: ${exit.cause}`)
        },
      }),
    )
  }

  const crash = (number: number): void => {
    if (isHealed) return
    processes[number]?.machine.kill()
    tell(`process ${number}`, "crashes", true)
    http.crash(number)
    loop.after(choose.between(0, 3000), () => start(number))
  }

  const setServer = (isUp: boolean): void => {
    isServerUp = isUp
    tell("store", isUp ? "answers again" : "does not answer", !isUp)
  }

  /** Moves the stores to another server, as an operator does: nothing runs meanwhile. */
  const move = ({ move: moveDatabase }: Database): void => {
    if (isHealed) return
    for (const number of processes.keys()) crash(number)
    setServer(false)
    const arrive = (moved: Context.Context<StorePorts>): void => {
      stores = broken(moved)
      tell("store", "has moved", true)
      onOperation?.({ method: "move", args: [], value: undefined, tick: serverMachine.tick() })
      loop.after(choose.between(0, 3000), () => setServer(true))
    }
    loop.wait(moveDatabase().then(arrive))
  }

  const setClock = (machine: Machine, byMillis: number): void => {
    machine.setClock(byMillis)
    if (machine === serverMachine && database !== undefined) forwardMillis += Math.max(0, byMillis)
    tell(machine.name, `has its clock set by ${byMillis} ms`, true)
    for (const process of processes) process.machine.poll()
  }

  /** Takes a request to a process. Answers only if the process lives for as long. */
  const serve: HttpNetwork["serve"] = (number, request, respond) => {
    const { handler, machine } = processes[number] ?? {}
    if (handler === undefined || machine === undefined || !machine.isUp()) return
    machine.schedule(() =>
      Effect.runCallbackWith(machine.services)(handler.handle(request), {
        onExit: (exit) => {
          if (Exit.isFailure(exit)) return tell(machine.name, `dies: ${exit.cause}`)
          const { status } = exit.value
          if (status !== 429 && status !== 503) notes.admissions.push(loop.now())
          respond(exit.value, machine)
        },
      }),
    )
  }

  const http = makeHttp({
    loop,
    choose,
    trouble: () => trouble(weather.http),
    pick: () => choose.below(weather.processes),
    serve,
  })

  const sendByFetch = makeFetch(http, loop, choose)
  const fetch: typeof sendByFetch = (input, init) => {
    const what = `${init?.method ?? "GET"} ${String(input)}`
    const response = sendByFetch(input, init)
    response.then(
      ({ status }) => tell("client", `${what} ${status}`),
      () => tell("client", `${what} is not answered`),
    )
    return response
  }

  const request = (sent: ApiRequest): Effect.Effect<HttpAnswer | undefined> =>
    Effect.callback((resume) => {
      let status = 0
      let text = ""
      let isWaiting = true
      const end = (answer: HttpAnswer | undefined): void => {
        if (!isWaiting) return
        isWaiting = false
        tell("client", `${sent.method} ${sent.path} ${answer?.status ?? "is not answered"}`)
        clients.schedule(() => resume(Effect.succeed(answer)))
      }
      const leave = http.send(sent, {
        head: (given) => (status = given),
        text: (more) => (text += more),
        end: () => end({ status, body: parse(text) }),
        broken: () => end(undefined),
      })
      loop.after(patienceMillis, () => {
        leave()
        end(undefined)
      })
    })

  for (let number = 0; number < weather.processes; number++) start(number)
  for (const at of weather.crashes) loop.after(at, () => crash(choose.below(weather.processes)))
  for (const { at, millis } of weather.outages) {
    loop.after(at, () => {
      if (isHealed) return
      setServer(false)
      loop.after(millis, () => setServer(true))
    })
  }
  if (database !== undefined) {
    for (const at of weather.moves) loop.after(at, () => move(database))
  }
  for (const { at, byMillis, isOfStore } of weather.jumps) {
    loop.after(at, () => {
      const machine = isOfStore ? serverMachine : processes[choose.below(processes.length)]?.machine
      if (machine !== undefined && !isHealed) setClock(machine, byMillis)
    })
  }

  return {
    seed,
    loop,
    choose,
    sabotage,
    endsAt: beginning + weather.millis + drainMillis,
    notes,
    told,
    clients,
    server,
    fetch,
    request,
    processes: () => processes.map(({ machine }) => machine),
    crash,
    setServer,
    setClock,
    isHealed: () => isHealed,
    heal: () => {
      isHealed = true
      isServerUp = true
      for (const [number, { machine }] of processes.entries()) if (!machine.isUp()) start(number)
    },
  }
}
