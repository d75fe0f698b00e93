/** For the packages of this repository, in the same version. Nothing here is stable. */

export { type ControlledRuntime, EndlessWork, makeControlledRuntime } from "./controlled-runtime.ts"
