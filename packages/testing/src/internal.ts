/** For the packages of this repository, in the same version. Nothing here is stable. */

export { makeControlledRuntime, seededCrypto } from "./controlled-runtime.ts"
