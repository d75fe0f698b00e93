/** What one follower of the feed watches: the new events of a project, until it takes them. */

import type * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { ProjectId } from "../base/Project.ts"
import type { Cursor, FeedEvent } from "./FeedStore.ts"

/** New events of one project, oldest first, and the place after them. */
export interface Batch {
  readonly events: ReadonlyArray<FeedEvent>
  readonly cursor: Cursor
}

// How many batches wait for a follower that is slower than the events.
const mostBatches = 16

const none: ReadonlyArray<Batch> = []

/** A watch of a project. An idle one is no more than this object, because there may be thousands. */
export class Watch {
  readonly projectId: ProjectId
  private readonly all: Set<Watch>
  private beginning: Latch.Latch | undefined = Latch.makeUnsafe()
  private batches = none
  private wake: (() => void) | undefined

  /** @param all - the watches that have not ended, of which this is one now */
  constructor(projectId: ProjectId, all: Set<Watch>) {
    this.projectId = projectId
    this.all = all
    all.add(this)
  }

  /** Whether a read had the project, and all events until then. */
  get hasBegun(): boolean {
    return this.beginning === undefined
  }

  /**
   * Waits until the watch has begun, or ended: what is not visible to a read that begins later comes in a
   * batch. So may some of what is visible to it, but nothing that was visible to a read before the watch.
   */
  get begun(): Effect.Effect<void> {
    return (this.beginning ?? open).await
  }

  /** Whether no more batches come: too many have waited, or the feed cannot go on, or it was stopped. */
  get hasEnded(): boolean {
    return !this.all.has(this)
  }

  /** Takes the next batch, if there is one. */
  take(): Batch | undefined {
    const [batch] = this.batches
    if (batch !== undefined) this.batches = this.batches.length === 1 ? none : this.batches.slice(1)
    return batch
  }

  /** Calls a function once, when there is a batch or the watch ends, in place of the one before. */
  whenReady(wake: () => void): void {
    if (this.hasEnded || this.batches.length > 0) wake()
    else this.wake = wake
  }

  begin(): void {
    this.beginning?.openUnsafe()
    this.beginning = undefined
  }

  /** Adds a batch. If too many wait, the watch ends. */
  offer(batch: Batch): void {
    if (this.hasEnded) return
    if (this.batches.length === mostBatches) return this.end()
    this.batches = [...this.batches, batch]
    this.call()
  }

  /** Ends the watch, without the batches that wait. */
  end(): void {
    this.stop()
    this.call()
  }

  /** Ends the watch, whose follower does not wait any more. */
  stop(): void {
    this.all.delete(this)
    this.batches = none
    this.begin()
  }

  private call(): void {
    const { wake } = this
    this.wake = undefined
    wake?.()
  }
}

const open = Latch.makeUnsafe(true)
