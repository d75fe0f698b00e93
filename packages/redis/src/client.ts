/** The client of the host: of `ioredis` or of `redis`, for one server, for Sentinel or for a cluster. */

/** What a script is run with. */
interface Keyed {
  readonly keys: Array<string>
  readonly arguments: Array<string>
}

/** What is used of a client of `ioredis`, a `Redis` or a `Cluster`. */
export interface IoRedis {
  readonly isCluster: boolean
  readonly evalsha: (sha: string, keys: number, ...more: Array<string>) => Promise<unknown>
  readonly eval: (script: string, keys: number, ...more: Array<string>) => Promise<unknown>
}

/** What is used of a client of `redis`, which `createClient`, `createSentinel` or `createCluster` makes. */
export interface NodeRedis {
  readonly evalSha: (sha: string, keyed: Keyed) => Promise<unknown>
  readonly eval: (script: string, keyed: Keyed) => Promise<unknown>
}

/** A client that the host has made. */
export type Client = IoRedis | NodeRedis

/** Runs a script, named by its digest or given as its text. */
type Run = (
  script: string,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
) => Promise<unknown>

/** What both libraries can do. */
export interface Redis {
  /** Whether keys are spread over several servers, so that the keys of a script must share a slot. */
  readonly isCluster: boolean
  readonly evalSha: Run
  readonly eval: Run
}

const isNodeRedis = (client: Client): client is NodeRedis => "evalSha" in client

/** Tells whether a value is a client. */
export const isClient = (given: unknown): boolean =>
  typeof given === "object" && given !== null && ("evalSha" in given || "evalsha" in given)

const ofNodeRedis = (client: NodeRedis): Redis => ({
  isCluster: "slots" in client,
  evalSha: (sha, keys, args) => client.evalSha(sha, { keys: [...keys], arguments: [...args] }),
  eval: (text, keys, args) => client.eval(text, { keys: [...keys], arguments: [...args] }),
})

const ofIoRedis = (client: IoRedis): Redis => ({
  isCluster: client.isCluster,
  evalSha: (sha, keys, args) => client.evalsha(sha, keys.length, ...keys, ...args),
  eval: (text, keys, args) => client.eval(text, keys.length, ...keys, ...args),
})

/** Hides which library a client is of. */
export const toRedis = (client: Client): Redis =>
  isNodeRedis(client) ? ofNodeRedis(client) : ofIoRedis(client)
