/** The operation that tells who sends a request. */

import * as Effect from "effect/Effect"
import { type OperationsOn, sortedProjects } from "./Operation.ts"
import * as Query from "./Query.ts"

/** Makes the operation. */
export const make = () =>
  ({
    "identity.get": Effect.fnUntraced(function* ({ principal, request }) {
      yield* Query.read(request, {})
      const { isReadOnly, keyId, projects, role } = principal
      return {
        message: "Who sent the request.",
        data: {
          key_id: keyId,
          role,
          projects: sortedProjects(projects),
          read_only: isReadOnly,
        },
      }
    }),
  }) satisfies OperationsOn<"identity">
