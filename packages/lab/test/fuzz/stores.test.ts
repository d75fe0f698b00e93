/** Differences between stores are found and shrunk. */

import { MembershipStore, Outbox, type StorePorts } from "@tenure/core/store"
import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { expect, it } from "vitest"
import { playSeed, shrink } from "../../fuzz/stores/run.ts"
import { type Store, inMemory } from "../../fuzz/stores/sides.ts"

const start = Date.now()

/** A store in memory with operations that are wrong. */
const broken = <Identifier, Shape>(
  port: Context.Key<Identifier, Shape>,
  wrong: (right: Shape) => Partial<Shape>,
): Store => ({
  ...inMemory,
  name: "broken",
  stores: Layer.effectContext(
    Effect.map(Effect.context<StorePorts>(), (context) => {
      const right = Option.getOrThrow(Context.getOption(context, port))
      return Context.add(context, port, { ...right, ...wrong(right) })
    }),
  ).pipe(Layer.provideMerge(memory())),
})

const sabotaged: Readonly<Record<string, Store>> = {
  "shortens by a bulk extension that must not": broken(MembershipStore, ({ extendAll }) => ({
    extendAll: (extension) =>
      extendAll({
        ...extension,
        bulk:
          extension.bulk.mode === "extendBy" ? extension.bulk : { ...extension.bulk, mode: "set" },
      }),
  })),
  "forgets the date of the last bulk extension": broken(MembershipStore, ({ findProject }) => ({
    findProject: (id) =>
      Effect.map(findProject(id), (project) => ({ ...project, lastBulkEndDate: undefined })),
  })),
  "lists deliveries whatever their state": broken(Outbox, ({ deliveries }) => ({
    deliveries: (webhook, page) => deliveries(webhook, { ...page, state: undefined }),
  })),
}

it.each(Object.keys(sabotaged))("a store that %s is found", async (name) => {
  const stores = [inMemory, sabotaged[name] ?? inMemory]
  for (let seed = 1; ; seed++) {
    expect(seed).toBeLessThan(20)
    const { difference } = await playSeed(stores, start, seed, 250)
    if (difference !== undefined) break
  }
})

it("a difference is shrunk", async () => {
  const [name = ""] = Object.keys(sabotaged).slice(1)
  const stores = [inMemory, sabotaged[name] ?? inMemory]
  const { difference } = await playSeed(stores, start, 1, 250)
  if (difference === undefined) throw new TypeError("no difference")
  const { answers, steps } = await shrink(stores, start, difference, 60)
  // A bulk extension, and a request for the project.
  expect(steps).toHaveLength(2)
  expect(new Set(answers.map(({ answer }) => answer)).size).toBe(2)
})
