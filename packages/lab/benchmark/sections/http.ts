/** Extensions over HTTP, in memory: Tenure beside a typical implementation on a framework. */

import { type Section, rowsOf } from "../measurement.ts"
import { compare } from "../rounds.ts"
import type { Target } from "../target.ts"
import { withServers } from "../with-servers.ts"

const raw = "node:http, by hand"
const fastify = "Fastify + @fastify/rate-limit + JSON schema"
const express = "Express + express-rate-limit + zod"
const logged = "Tenure, access log on"

// The rest of the processor time is spent in the kernel and in the virtual machine.
const profile =
  "The adapter with a constant answer costs as much as node:http by hand, batched. What is above that are the functions of a request, which the table further down lists: they alone make it 1.5 ×. The steps of Effect between them are a twentieth of the time."

const cpuTargets: Record<string, Target> = { [raw]: { of: "ratio", atMost: 1.3, profile } }
const rateTargets: Record<string, Target> = {
  [fastify]: { of: "ratio", atLeast: 1.1, profile },
  [express]: { of: "ratio", atLeast: 1.6 },
}

const served = {
  tenure: { name: "Tenure", server: "tenure" },
  peers: [
    { name: logged, server: "tenure-logged" },
    { name: raw, server: "raw" },
    { name: `${raw}, batched`, server: "raw-batched" },
    { name: fastify, server: "fastify" },
    { name: express, server: "express" },
  ],
}

/** Throughput of one process, and its processor time alone. */
export const http: Section = {
  name: "http",
  measure: (settings) =>
    withServers(served, async (field) => {
      const { peers: all, tenure } = await compare(field, settings)
      const peers = all.filter(({ name }) => name !== logged)
      const withLog = all.filter(({ name }) => name === logged)
      const measured = "extension over HTTP, in memory"
      return {
        rows: [
          ...rowsOf(measured, "cpu", { tenure, peers }, cpuTargets),
          ...withLog.flatMap((one) =>
            rowsOf(`${measured}, access log on`, "cpu", { tenure: one, peers }, cpuTargets),
          ),
          ...rowsOf(measured, "rate", { tenure, peers }, rateTargets),
        ],
      }
    }),
}
