/** What is wrong with a host is found, and nothing is wrong with the hosts that there are. */

import { type RequestListener, createServer } from "node:http"
import { expect, it } from "vitest"
import { type Host, startHosts } from "../../fuzz/hosts.ts"
import { report } from "../../fuzz/report.ts"
import { type Failure, run } from "../../fuzz/run.ts"
import { listen } from "../../listening.ts"

const high = { limit: 1_000_000_000, window: "300 days" } as const
const options = {
  rateLimits: { perKey: high, perAddress: high, burst: high },
  webhooks: { maxPerProject: 1000 },
}

const envelope = JSON.stringify({
  ok: true,
  request_id: "b9019cc1-e966-4695-ad2c-6caf64a8431f",
  code: 200,
})

/** Starts a server that answers every request in the same way. */
const startHost = async (name: string, listener: RequestListener): Promise<Host> => {
  const server = createServer(listener)
  return {
    name,
    port: await listen(server),
    createWebhook: async () => "b9019cc1-e966-4695-ad2c-6caf64a8431f",
    deleteWebhooks: async () => {},
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const answer =
  (status: number, body: string): RequestListener =>
  (_request, response) => {
    const headers = {
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-ratelimit-limit": "100",
      "x-ratelimit-remaining": "99",
      "x-ratelimit-reset": "1790000000",
    }
    response.writeHead(status, headers).end(body)
  }

/** Fuzzes two servers, and returns what is wrong. */
const problemsOf = async (broken: RequestListener): Promise<ReadonlyArray<string>> => {
  const hosts = [await startHost("sound", answer(200, envelope)), await startHost("broken", broken)]
  const failures: Array<Failure> = []
  const onFailure = (failure: Failure) => void failures.push(failure)
  await run(hosts, { seed: 1, requests: 40, concurrency: 8, onFailure, deadline: 500 })
  await Promise.all(hosts.map((host) => host.close()))
  return failures.flatMap(({ problems }) => problems)
}

it.each<[string, RequestListener, RegExp]>([
  [
    "answers 500",
    (request, response) =>
      answer(request.method === "GET" ? 500 : 200, envelope)(request, response),
    /^broken: status 500$/m,
  ],
  [
    "answers with another shape",
    answer(200, envelope.replace('"ok":true,', "")),
    /^broken: answer 1 is 200/m,
  ],
  ["answers with another status", answer(201, envelope), /^broken: code is not the status$/m],
  ["shows a stack trace", answer(200, "Error: no\n    at answer"), /^broken: a stack trace$/m],
  ["does not answer", () => {}, /^broken: no answer in time$/m],
])("a host that %s is found", async (_, listener, problem) => {
  expect((await problemsOf(listener)).join("\n")).toMatch(problem)
})

it("all hosts answer the same, whatever is sent", async () => {
  const hosts = await startHosts(options)
  const failures: Array<Failure> = []
  const onFailure = (failure: Failure) => void failures.push(failure)
  await run(hosts, { seed: 1, requests: 100, concurrency: 1, onFailure })
  await Promise.all(hosts.map((host) => host.close()))
  expect(failures.map((failure) => report(1, failure))).toEqual([])
})
