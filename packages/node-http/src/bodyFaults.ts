/** Faults that the parser finds in the body of a request while somebody reads it. */

import type { ArrivedBody } from "@tenure/core/ApiRequest"
import type { NodeRequest } from "./messages.ts"

type Take = (fault: ArrivedBody) => void

const takers = new WeakMap<NodeRequest, Take>()
const faults = new WeakMap<NodeRequest, ArrivedBody>()

/** Has `take` answer a request if its body is faulty, in place of whoever took the fault before. */
export const takeFault = (request: NodeRequest, take: Take): void => void takers.set(request, take)

/** The fault of a body that was found before anybody read it. */
export const faultOf = (request: NodeRequest): ArrivedBody | undefined => faults.get(request)

/** Passes a fault to whoever reads the body. Returns `false` if nobody does. */
export const passFault = (request: NodeRequest, fault: ArrivedBody): boolean => {
  faults.set(request, fault)
  const take = takers.get(request)
  take?.(fault)
  return take !== undefined
}
