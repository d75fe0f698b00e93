/** Values and steps that several ports share in their tests. */

import { isReplayedResponse } from "@tenure/core/internal"
import {
  type Event,
  type Granted,
  MembershipStore,
  type ProjectId,
  type ReplayedResponse,
  type StoredWebhook,
  type WebhookRef,
  WebhookStore,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { expect } from "vitest"
import { makeWebhook, context, p1, p2 } from "../support/fixtures.ts"

export const hour = 3_600_000
export const dayMillis = 86_400_000

/** Creates the tests' two projects. */
export const createProjects = Effect.gen(function* () {
  const store = yield* MembershipStore
  yield* store.createProject(p1, context)
  yield* store.createProject(p2, context)
})

/** Adds a new webhook to a project, with the given settings. */
export const addWebhook = Effect.fnUntraced(function* (
  projectId: ProjectId = p1,
  settings: Partial<StoredWebhook> = {},
) {
  const webhook: StoredWebhook = { ...makeWebhook(projectId), ...settings }
  yield* (yield* WebhookStore).add(webhook, 100, context)
  return webhook
})

export const refOf = ({ id, projectId }: Pick<StoredWebhook, "id" | "projectId">): WebhookRef => ({
  projectId,
  webhookId: id,
})

export const idsOf = (events: ReadonlyArray<Pick<Event, "id">>) => events.map(({ id }) => id)

/** Returns an element, and fails the test if the list is shorter. */
export const at = <A>(all: ReadonlyArray<A>, index: number): A =>
  all[index] ?? expect.fail(`the list has no element ${index}`)

export const firstOf = <A>(all: ReadonlyArray<A>): A => at(all, 0)

/** Runs steps at the same time. */
export const together = <A, E, R>(steps: ReadonlyArray<Effect.Effect<A, E, R>>) =>
  Effect.all(steps, { concurrency: "unbounded" })

/** Runs a step several times at the same time. */
export const times = <A, E, R>(count: number, step: (index: number) => Effect.Effect<A, E, R>) =>
  together(Array.from({ length: count }, (_, index) => step(index)))

/** Runs a step several times at the same time. Returns how many succeed. */
export const successesOf = <A, E, R>(
  count: number,
  step: (index: number) => Effect.Effect<A, E, R>,
) =>
  Effect.map(
    times(count, (index) => Effect.exit(step(index))),
    (exits) => exits.filter(({ _tag }) => _tag === "Success").length,
  )

/** Makes a request several times at the same time, and expects that it is made once. Returns the others' answers. */
export const answersToRepeated = <A, E, R>(
  count: number,
  request: (index: number) => Effect.Effect<A, E, R>,
) =>
  Effect.map(times(count, request), (results) => {
    const answers = results.flatMap((one) => (isReplayedResponse(one) ? [one.answer] : []))
    expect(answers).toHaveLength(count - 1)
    return answers
  })

/** Returns the event of a grant, or the replayed answer. */
export const eventOfGrant = (result: Granted | ReplayedResponse): Event | ReplayedResponse =>
  isReplayedResponse(result) ? result : result.event

/** Returns the tag of a step's failure, or "done" if it succeeds. */
export const outcomeOf = <A, R>(step: Effect.Effect<A, { readonly _tag: string }, R>) =>
  Effect.match(step, { onSuccess: () => "done", onFailure: ({ _tag }) => _tag })

/** Expects each of some steps to fail with an error that has a tag. */
export const expectFailure = Effect.fnUntraced(function* <R>(
  tag: string,
  ...steps: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }, R>>
) {
  const outcomes = yield* Effect.forEach(steps, outcomeOf)
  expect(outcomes).toEqual(steps.map(() => tag))
})
