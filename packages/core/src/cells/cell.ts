/** Cells: each has the stores for some projects. The project id alone tells its cell, without a round trip. */

import * as Context from "effect/Context"
import type { ProjectId } from "../base/values.ts"
import type { FeedStore } from "../events/feed-store.ts"
import type { ApiKeyStore } from "../keys/store.ts"
import type { MembershipStore } from "../memberships/store.ts"
import type { Outbox } from "../webhooks/outbox.ts"
import type { WebhookStore } from "../webhooks/store.ts"

/** A cell's stores. */
export interface Cell {
  /** Its name in logs and metrics. */
  readonly name: string
  readonly memberships: MembershipStore["Service"]
  readonly webhooks: WebhookStore["Service"]
  readonly outbox: Outbox["Service"]
  readonly feed: FeedStore["Service"]
}

/** The home's stores needed by cells. */
export interface HomeStores {
  /** Has all projects by their ids, without memberships. */
  readonly memberships: MembershipStore["Service"]
  readonly apiKeys: ApiKeyStore["Service"]
}

/** The stores' cells, to inspect each by itself. By default, there are none. */
export const Cells = Context.Reference<ReadonlyArray<Cell>>("@tenure/core/Cells", {
  defaultValue: () => [],
})

const encoder = new TextEncoder()

/**
 * Returns a project's cell number, counted from 0: its id's 32-bit FNV-1a hash modulo the cell count.
 * It must never change, because projects stay in their cells.
 *
 * @see http://www.isthe.com/chongo/tech/comp/fnv/
 */
export const cellNumber = (projectId: ProjectId, count: number): number => {
  let hash = 0x81_1c_9d_c5
  for (const byte of encoder.encode(projectId)) hash = Math.imul(hash ^ byte, 0x01_00_01_93)
  return (hash >>> 0) % count
}

/** Divides a number into shares differing by one at most, the larger ones first. */
export const shareEvenly = (total: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => Math.ceil((total - index) / count))

/** Returns the items in their order, beginning with the item after `turn` others. */
export const rotate = <A>(items: ReadonlyArray<A>, turn: number): ReadonlyArray<A> => {
  const first = items.length === 0 ? 0 : turn % items.length
  return [...items.slice(first), ...items.slice(0, first)]
}
