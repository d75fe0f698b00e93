/** Keeps in the audit trail who was shown what is secret. */

import * as Effect from "effect/Effect"
import type { Shown } from "../memberships/Membership.ts"
import { Memberships } from "../memberships/Memberships.ts"
import type { ApiError } from "./ApiError.ts"
import { type Call, originOf, projectOf } from "./Operation.ts"

/** Makes the function that an operation calls before it answers. */
export const make = Effect.map(
  Memberships,
  ({ recordShown }) =>
    (
      call: Call<"project_id">,
      action: Shown["action"],
      subject: string,
    ): Effect.Effect<void, ApiError> =>
      Effect.flatMap(projectOf(call), (projectId) =>
        recordShown({ projectId, action, subject }, originOf(call)),
      ),
)
