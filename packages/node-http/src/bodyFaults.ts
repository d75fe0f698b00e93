/** Faults that the parser finds in the body of a request while somebody reads it. */

import type { ArrivedBody } from "@tenure/core/ApiRequest"
import type { NodeRequest } from "./messages.ts"

const faultEvent = Symbol("@tenure/node-http/fault")

const faults = new WeakMap<NodeRequest, ArrivedBody>()

/** Has `take` answer a request if its body is faulty, in place of whoever took the fault before. */
export const takeFault = (request: NodeRequest, take: (fault: ArrivedBody) => void): void =>
  // Not in a map of all requests: entries of weak maps cost the garbage collector much.
  void request.removeAllListeners(faultEvent).on(faultEvent, take)

/** The fault of a body that was found before anybody read it. */
export const faultOf = (request: NodeRequest): ArrivedBody | undefined => faults.get(request)

/** Passes a fault to whoever reads the body. Returns `false` if nobody does. */
export const passFault = (request: NodeRequest, fault: ArrivedBody): boolean => {
  faults.set(request, fault)
  return request.emit(faultEvent, fault)
}
