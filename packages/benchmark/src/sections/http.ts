/** Extensions over HTTP, in memory: Tenure beside what a team would write on a framework. */

import type { Section, Target } from "../measurement.ts"
import { rowsOf } from "../measurement.ts"
import { overHttp, start, startServer } from "../processes.ts"
import { compare, type Contestant, type Field } from "../rounds.ts"
import { requests } from "../servers/workload.ts"

const raw = "node:http, a constant"
const fastify = "Fastify + @fastify/rate-limit + JSON schema"
const express = "Express + express-rate-limit + zod"

const cpuTargets: Record<string, Target> = { [raw]: { of: "ratio", atMost: 1.5 } }
const rateTargets: Record<string, Target> = {
  [fastify]: { of: "ratio", atLeast: 1.1 },
  [express]: { of: "ratio", atLeast: 1.6 },
}

/** Lends servers and the generator of their load. */
export const withServers = async <A>(
  names: Field<{ readonly name: string; readonly server: string; readonly prefix?: string }>,
  use: (contestants: Field<Contestant>) => Promise<A>,
): Promise<A> => {
  const generator = await start("./loadGenerator.ts")
  const running = [generator.stop]
  const contestant = async ({ name, prefix, server }: typeof names.tenure) => {
    const process = await startServer(server)
    running.push(process.stop)
    return overHttp(name, process, generator, requests(prefix))
  }
  try {
    const peers = await Promise.all(names.peers.map(contestant))
    return await use({ tenure: await contestant(names.tenure), peers })
  } finally {
    for (const stop of running) stop()
  }
}

const contestants = {
  tenure: { name: "Tenure", server: "tenure" },
  peers: [
    { name: raw, server: "raw" },
    { name: fastify, server: "fastify" },
    { name: express, server: "express" },
  ],
}

/** Throughput of one process, and its processor time alone. */
export const http: Section = {
  name: "http",
  measure: (settings) =>
    withServers(contestants, async (field) => {
      const scores = await compare(field, settings)
      const measured = "extension over HTTP, in memory"
      return {
        rows: [
          ...rowsOf(measured, "cpu", scores, cpuTargets),
          ...rowsOf(measured, "rate", scores, rateTargets),
        ],
      }
    }),
}
