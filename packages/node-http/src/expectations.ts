/** Requests whose clients wait for 100 Continue before they send the body. */

import type { NodeRequest } from "./messages.ts"

const expectations = new WeakMap<NodeRequest, () => void>()

/**
 * Registers a request whose client waits.
 *
 * @param sendContinue - tells the client to send the body
 */
export const expectContinue = (request: NodeRequest, sendContinue: () => void): void =>
  void expectations.set(request, sendContinue)

/**
 * Returns what tells the client to send the body, if it waits. Whoever takes it is responsible for
 * calling it.
 */
export const takeExpectation = (request: NodeRequest): (() => void) | undefined => {
  const sendContinue = expectations.get(request)
  expectations.delete(request)
  return sendContinue
}
