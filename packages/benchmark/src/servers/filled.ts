/** An instance of Tenure in memory with members, API keys, and limits that no client reaches. */

import type { AccessRecord } from "@tenure/core/Handler"
import * as Tenure from "@tenure/core/Tenure"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { memberCount, projectId, tokens } from "./workload.ts"

// Tokens come back slowly, so that the buckets are kept from one request to the next.
const limit = { limit: 10_000_000, window: "300 days" } as const

/** The options that vary. */
interface Options {
  readonly history?: number
  readonly onResponse?: (record: AccessRecord) => void
  readonly webhooks?: Tenure.WebhookOptions
}

/** Makes it. */
export const makeFilled = async ({
  history,
  onResponse,
  webhooks,
}: Options = {}): Promise<Tenure.Tenure> => {
  const tenure = await Tenure.make({
    stores: memory({ history }),
    transport: nodeTransport,
    rateLimits: { perKey: limit, perAddress: limit, burst: limit },
    onResponse,
    webhooks,
  })
  await tenure.memberships.createProject(projectId)
  for (let user = 1; user <= memberCount; user++) {
    const userId = String(user)
    await tenure.memberships.grant({ projectId, userId, endDate: "2027-01-01T00:00:00.000Z" })
  }
  for (const token of tokens) await tenure.apiKeys.issue({ projects: [projectId], token })
  return tenure
}
