/** A cluster with three servers on this machine. */

import { freePort } from "@tenure/testing/conformance"
import { type RedisServer, startRedis, tell, until } from "./redis-server.ts"

/** A running cluster. */
export interface RedisCluster {
  /** The servers that have slots. Each has a third. */
  readonly servers: readonly [RedisServer, RedisServer, RedisServer]
  /** Adds a server that copies another. */
  readonly addReplica: (of: RedisServer) => Promise<RedisServer>
  readonly stop: () => Promise<void>
}

const startNode = async (): Promise<RedisServer> =>
  startRedis([
    "--cluster-enabled",
    "yes",
    "--cluster-port",
    String(await freePort()),
    // A busy machine is no outage.
    "--cluster-node-timeout",
    "60000",
    "--repl-diskless-sync-delay",
    "0",
    // A server that is lost is replaced by hand, and the others go on.
    "--cluster-require-full-coverage",
    "no",
  ])

const busPort = async (server: RedisServer): Promise<number> => {
  const reply = await tell(server, "CONFIG", "GET", "cluster-port")
  return Number(Array.isArray(reply) ? reply[1] : NaN)
}

const meet = async (one: RedisServer, other: RedisServer): Promise<unknown> =>
  tell(one, "CLUSTER", "MEET", "127.0.0.1", other.port, await busPort(other))

const startThird = async (index: 0 | 1 | 2): Promise<RedisServer> => {
  const server = await startNode()
  const [from, to] = [Math.ceil((index * 16_384) / 3), Math.ceil(((index + 1) * 16_384) / 3) - 1]
  await tell(server, "CLUSTER", "ADDSLOTSRANGE", from, to)
  await tell(server, "CLUSTER", "SET-CONFIG-EPOCH", index + 1)
  return server
}

const isReplicaOf = (id: string): RegExp => new RegExp(`slave ${id}`)

/** Starts a cluster. */
export const startCluster = async (): Promise<RedisCluster> => {
  const servers = await Promise.all([startThird(0), startThird(1), startThird(2)])
  const all: Array<RedisServer> = [...servers]
  const [first, second, third] = servers
  await meet(first, second)
  await meet(first, third)
  for (const server of servers) {
    await until(server, ["CLUSTER", "INFO"], /cluster_state:ok[^]*cluster_slots_assigned:16384/)
  }

  return {
    servers,
    addReplica: async (of) => {
      const id = String(await tell(of, "CLUSTER", "MYID"))
      const replica = await startNode()
      all.push(replica)
      await meet(of, replica)
      await until(replica, ["CLUSTER", "NODES"], new RegExp(id))
      await tell(replica, "CLUSTER", "REPLICATE", id)
      await until(replica, ["INFO", "replication"], /master_link_status:up/)
      // They hear about it from each other.
      for (const server of servers) await until(server, ["CLUSTER", "NODES"], isReplicaOf(id))
      return replica
    },
    stop: async () => {
      await Promise.all(all.map(({ stop }) => stop()))
    },
  }
}
