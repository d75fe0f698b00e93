/** The projects of other stores, in memory. */

import type { ProjectDirectory } from "@tenure/core/ProjectDirectory"
import * as Effect from "effect/Effect"
import * as Page from "../projects/Page.ts"
import * as State from "../State.ts"

/** Makes the directory. */
export const make = (state: State.State): ProjectDirectory["Service"] => ({
  add: (projectId, occasion) =>
    state.answers.change(
      occasion.once,
      undefined,
      Effect.sync(() => State.addElsewhere(state, projectId, occasion)),
    ),

  remove: (projectId, occasion) =>
    state.answers.change(
      occasion.once,
      undefined,
      Effect.sync(() => State.removeElsewhere(state, projectId, occasion)),
    ),

  has: (projectId) => Effect.sync(() => state.elsewhere.has(projectId)),

  list: (page) => Effect.sync(() => Page.of([...state.elsewhere], page)),
})
