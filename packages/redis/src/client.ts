/** The host's Redis client, from `ioredis` or `redis`: for one server, Sentinel or a cluster. */

/** A script's keys and arguments. */
interface Keyed {
  readonly keys: Array<string>
  readonly arguments: Array<string>
}

/** The used part of an `ioredis` client, a `Redis` or a `Cluster`. */
export interface IoRedis {
  readonly isCluster: boolean
  readonly evalsha: (sha: string, keys: number, ...more: Array<string>) => Promise<unknown>
  readonly eval: (script: string, keys: number, ...more: Array<string>) => Promise<unknown>
}

/** The used part of a `redis` client from `createClient`, `createSentinel` or `createCluster`. */
export interface NodeRedis {
  readonly evalSha: (sha: string, keyed: Keyed) => Promise<unknown>
  readonly eval: (script: string, keyed: Keyed) => Promise<unknown>
}

/** The host's client. */
export type Client = IoRedis | NodeRedis

/** Runs a script, named by its digest or given as its text. */
type Run = (
  script: string,
  keys: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
) => Promise<unknown>

/** The operations both libraries offer. */
export interface Redis {
  /** Whether keys are spread over several servers: then a script's keys must share a slot. */
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

/** Adapts a client from either library. */
export const toRedis = (client: Client): Redis =>
  isNodeRedis(client) ? ofNodeRedis(client) : ofIoRedis(client)
