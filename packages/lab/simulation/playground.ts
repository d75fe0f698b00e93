/** A world in which nothing fails until somebody has it fail: for the documentation's page. */

import * as Effect from "effect/Effect"
import { random } from "../faults/random.ts"
import { requestOf } from "./http.ts"
import { type Machine, beginning } from "./loop.ts"
import { type Remains, type Told, makeNotes } from "./record.ts"
import { atServer, prepare, readRemains, token } from "./server.ts"
import { type Weather, calm, calmWeather, well } from "./weather.ts"
import { projects } from "./workload.ts"
import { type HttpAnswer, load, makeWorld } from "./world.ts"

/** A computer as it is now. */
export interface Computer {
  readonly name: string
  readonly isUp: boolean
  /** The time by its clock, in milliseconds since the epoch. */
  readonly wallMillis: number
}

/** A request at the receiver. */
interface Received {
  /** In milliseconds since the epoch. */
  readonly at: number
  readonly type: string
  readonly userId: string
  readonly isVerified: boolean
  readonly isAccepted: boolean
}

/** What a visitor sees. */
export interface Scene {
  /** The true time, in milliseconds since the epoch. */
  readonly now: number
  readonly store: Computer
  readonly processes: ReadonlyArray<Computer>
  readonly receiver: { readonly isUp: boolean; readonly received: ReadonlyArray<Received> }
  readonly members: Remains["members"]
  /** Deliveries that were not answered yet. */
  readonly waiting: number
  readonly told: ReadonlyArray<Told>
}

/** A world that waits for what is to be done. */
export interface Playground {
  readonly scene: () => Scene
  /** Has time pass. */
  readonly pass: (millis: number) => Promise<void>
  /** Has time pass until the next thing happens. */
  readonly step: () => Promise<void>
  /** Asks a process, again and again, to extend a membership from its end on. */
  readonly extend: (userId: string, byMillis: number) => void
  /** Ends a process at once. It starts again within seconds. */
  readonly kill: (process: number) => void
  readonly setStore: (isUp: boolean) => void
  readonly setReceiver: (isUp: boolean) => void
  /** Sets a process's or the store's clock forward or back. */
  readonly setClock: (computer: number | "store", byMillis: number) => void
}

const processes = 2
const [project] = projects
const path = `/v2/projects/${project}`
const url = "https://receiver.example/hooks"
// Minutes, so that a visitor can give the store back.
const maxTries = 200
const retryMillis = 1000
// Silent timers lie between what happens.
const maxTimers = 10_000
const maxTurns = 1000

/** The members, and after how many seconds their memberships end. */
const members: ReadonlyArray<readonly [userId: string, seconds: number]> = [
  ["ada", 30],
  ["grace", 60],
  ["linus", 120],
]

/** Whether to ask again. */
const isTransient = (answer: HttpAnswer | undefined): boolean =>
  answer === undefined || answer.status === 503 || answer.status === 429 || answer.status === 409

const computer = ({ isUp, name, wallMillis }: Machine): Computer => ({
  name,
  isUp: isUp(),
  wallMillis: wallMillis(),
})

/** Makes a seed's playground. */
export const makePlayground = async (seed: number): Promise<Playground> => {
  await load()
  let isReceiverUp = true
  let isStoreUp = true
  const weather: Weather = {
    ...calmWeather,
    processes,
    store: { ...calm, delay: [1, 20] },
    http: { ...calm, delay: [5, 50] },
    receivers: {
      ...well,
      delay: [5, 100],
      get refused() {
        return isReceiverUp ? 0 : 1
      },
    },
    millis: 0,
    limit: undefined,
  }
  const notes = makeNotes()
  const world = makeWorld(seed, weather, notes, { isTold: true })
  const { clients, loop } = world
  atServer(world, prepare)
  const choose = random(seed, "playground")
  let sent = 0

  const ask = Effect.fnUntraced(function* (method: string, to: string, body: object) {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "idempotency-key": `playground-${sent++}`,
    }
    const request = requestOf(method, `${path}${to}`, headers, JSON.stringify(body))
    for (let tries = 1; ; tries++) {
      const answer = yield* world.request(request)
      if (!isTransient(answer) || tries === maxTries) return answer
      yield* Effect.sleep(choose.between(retryMillis, 2 * retryMillis))
    }
  })

  const run = <A>(effect: Effect.Effect<A>): void =>
    loop.after(0, () => void Effect.runForkWith(clients.services)(effect))

  const remains = (): Remains => atServer(world, readRemains(world))

  const pass = (millis: number): Promise<void> => loop.runUntil(loop.now() + millis)

  const open = Effect.gen(function* () {
    const answer = yield* ask("POST", "/integrations/webhooks", { url })
    const { id, secret } = Object.fromEntries(Object.entries(answer?.body["data"] ?? {}))
    notes.webhooks.push({ id: String(id), projectId: project, url, secret: String(secret) })
    for (const [userId, seconds] of members) {
      const endDate = beginning + seconds * 1000
      yield* ask("PUT", `/memberships/${userId}`, { end_date: endDate })
    }
  })

  const hasStarted = (): boolean =>
    world.told.filter(({ what }) => what === "has started").length >= processes
  for (let turns = 0; !hasStarted(); turns++) {
    if (turns === maxTurns) throw new Error("The processes do not start.")
    await pass(10)
    // Browsers fetch the modules that a process loads.
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  run(open)
  await pass(1000)

  return {
    pass,
    scene: () => {
      const { deliveries, events, members: found } = remains()
      const byId = new Map(events.map((event) => [event.id, event]))
      return {
        now: loop.now(),
        store: { ...computer(world.server.machine), isUp: isStoreUp },
        processes: world.processes().map(computer),
        receiver: {
          isUp: isReceiverUp,
          received: notes.arrivals.map(({ at, eventId, isAccepted, isVerified }) => {
            const { data, type = "" } = byId.get(eventId) ?? {}
            return { at, type, userId: String(data?.["user_id"] ?? ""), isAccepted, isVerified }
          }),
        },
        members: found,
        waiting: deliveries.filter(({ state }) => state === "pending").length,
        told: world.told,
      }
    },
    step: async () => {
      const { length } = world.told
      for (let timers = 0; timers < maxTimers && world.told.length === length; timers++)
        await loop.runUntil(loop.nextAt())
    },
    extend: (userId, byMillis) => {
      const from = remains().members.find((member) => member.userId === userId)?.endDate
      const extend = Math.max(from ?? 0, loop.now()) + byMillis
      run(ask("PATCH", `/memberships/${userId}/extend`, { extend }))
    },
    kill: world.crash,
    setStore: (isUp) => {
      isStoreUp = isUp
      world.setServer(isUp)
    },
    setReceiver: (isUp) => {
      isReceiverUp = isUp
    },
    setClock: (which, byMillis) => {
      const machine = which === "store" ? world.server.machine : world.processes()[which]
      if (machine !== undefined) world.setClock(machine, byMillis)
    },
  }
}
