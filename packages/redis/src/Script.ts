/** Runs a script by its digest, so that its text is sent only to a server that does not have it. */

import { createHash } from "node:crypto"
import type { Redis } from "./Client.ts"

/** Runs the script. Returns what it replies. */
export type Script = (keys: ReadonlyArray<string>, args: ReadonlyArray<string>) => Promise<unknown>

const isUnknown = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("NOSCRIPT")

/** Makes a function that runs a script. */
export const make = (redis: Redis, text: string): Script => {
  const sha = createHash("sha1").update(text).digest("hex")
  return async (keys, args) => {
    try {
      return await redis.evalSha(sha, keys, args)
    } catch (error) {
      // The server has it from now on.
      if (isUnknown(error)) return redis.eval(text, keys, args)
      throw error
    }
  }
}
