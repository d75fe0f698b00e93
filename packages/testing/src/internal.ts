/** For this repository's packages, in the same version. Nothing here is stable. */

export { makeControlledRuntime } from "./controlled-runtime.ts"
export { clockStep } from "./clock-step.ts"
export { type Proxy, startProxy } from "./support/proxy.ts"
