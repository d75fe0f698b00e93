/** A Tenure with members, API keys, and limits that no client reaches. */

import {
  type AccessRecord,
  type CreateTenureOptions,
  type Tenure,
  type WebhookOptions,
  createTenure,
} from "@tenure/core"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { importToken, importedProjectId, memberCount, projectId, tokens } from "./workload.ts"

/**
 * A limit that no client reaches. Tokens come back slowly, so that the buckets are kept from one request to
 * the next.
 */
export const limit = { limit: 10_000_000, window: "300 days" } as const

/** The options that vary. */
export interface FilledOptions {
  readonly keys?: ReadonlyArray<string>
  readonly metrics?: boolean
  readonly onResponse?: (record: AccessRecord) => void
  readonly stores?: CreateTenureOptions["stores"]
  readonly webhooks?: WebhookOptions
}

const atATime = 32

/** Does something with all, but not at once, because a database has its limits. */
const forEach = async <A>(all: ReadonlyArray<A>, use: (one: A) => Promise<unknown>) => {
  for (let first = 0; first < all.length; first += atATime) {
    await Promise.all(all.slice(first, first + atATime).map(use))
  }
}

/** Makes it. */
export const makeFilled = async ({
  keys = tokens,
  metrics,
  onResponse,
  stores = memory(),
  webhooks,
}: FilledOptions = {}): Promise<Tenure> => {
  const tenure = await createTenure({
    stores,
    transport: nodeTransport,
    rateLimits: { perKey: limit, perAddress: limit, burst: limit },
    metrics,
    onResponse,
    webhooks,
  })
  const { apiKeys, memberships } = tenure
  for (const id of [projectId, importedProjectId]) await memberships.createProject(id)
  const users = Array.from({ length: memberCount }, (_, index) => String(index + 1))
  const endDate = "2027-01-01T00:00:00.000Z"
  await forEach(users, (userId) => memberships.grant({ projectId, userId, endDate }))
  await forEach(keys, (token) => apiKeys.issue({ projects: [projectId], token }))
  await apiKeys.issue({ projects: [importedProjectId], role: "operator", token: importToken })
  return tenure
}
