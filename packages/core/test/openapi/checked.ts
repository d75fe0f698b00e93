/** A Tenure instance with responses checked before they are sent. */

import type { Tenure } from "@tenure/core"
import type { Mountable } from "@tenure/core/adapter"
import { check } from "./contract.ts"

/** Checks every response. */
export const checked = (tenure: Tenure): Mountable => ({
  ...tenure,
  handle: async (request) => {
    const response = await tenure.handle(request)
    check(request, tenure.basePath, response)
    return response
  },
  answer: (request, deliver) =>
    tenure.answer(request, (response) => {
      check(request, tenure.basePath, response)
      deliver(response)
    }),
})
