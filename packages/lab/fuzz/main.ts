/**
 * Fuzzes every host with the same requests. Fails if there is a difference, a server error, or no
 * answer within five seconds. With `--limits`, the rate limits are as in production. The first
 * `--failures` are printed.
 */

import { parseArgs } from "node:util"
import { parseInteger } from "../arguments.ts"
import { startHosts } from "./hosts.ts"
import { report } from "./report.ts"
import { type Failure, run } from "./run.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    requests: { type: "string", default: "100000" },
    // With more, the hosts may perform requests that concern each other in different orders.
    concurrency: { type: "string", default: "1" },
    limits: { type: "boolean", default: false },
    failures: { type: "string", default: "5" },
  },
})

const most = parseInteger("failures", values.failures, 0)
const seed = parseInteger("seed", values.seed, 0)
const requests = parseInteger("requests", values.requests, 1)
const concurrency = parseInteger("concurrency", values.concurrency, 1)

const high = { limit: 1_000_000_000, window: "300 days" } as const
const rateLimits = values.limits ? {} : { perKey: high, perAddress: high, burst: high }

const failures: Array<Failure> = []

const hosts = await startHosts({ rateLimits, webhooks: { maxPerProject: 100_000 } })
const begin = performance.now()
const sent = await run(hosts, {
  seed,
  requests,
  concurrency,
  onFailure: (failure) => {
    if (failures.push(failure) <= most) console.error(report(seed, failure))
  },
})
const seconds = (performance.now() - begin) / 1000
await Promise.all(hosts.map((host) => host.close()))

console.log(
  `${sent} requests to each of ${hosts.length} hosts in ${seconds.toFixed(1)} s, ` +
    `${((sent * hosts.length) / seconds).toFixed(0)} requests/s; ${failures.length} failures`,
)
process.exit(failures.length > 0 ? 1 : 0)
