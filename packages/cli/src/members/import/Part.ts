/** Divides the lines of a file into the parts that are sent, each in one request. */

import { createHash } from "node:crypto"
import type { ImportLine } from "@tenure/client"
import type { Line, Member, Refused } from "./Line.ts"

/** What is sent in one request. */
export interface Part {
  /** At most one of each user. */
  readonly members: ReadonlyArray<Member>
  readonly refused: ReadonlyArray<Refused>
  /**
   * The same for the same part of the same file: the server applies it once, in whichever run it arrives.
   */
  readonly key: string
}

// The most that the API takes. Lines of this form are below its limit of 2 MiB then.
const mostMembers = 10_000

/** A member as it is sent. */
export const toLine = ({ end_date, user_id }: Member): ImportLine => ({ user_id, end_date })

/** Makes a key that depends on an earlier one and on members. */
export const keyAfter = (earlier: string, members: ReadonlyArray<Member>): string => {
  const hash = createHash("sha256").update(earlier)
  for (const { end_date, user_id } of members) hash.update(`\n${user_id} ${end_date}`)
  return hash.digest("base64url")
}

/**
 * Divides lines. If a user has several of them in a part, the last one holds, as it does across parts.
 *
 * @param seed - what the keys depend on besides the lines
 */
export async function* divide(lines: AsyncIterable<Line>, seed: string): AsyncGenerator<Part> {
  let members = new Map<string, Member>()
  let refused: Array<Refused> = []
  let key = seed
  const take = (): Part => {
    const part = {
      members: [...members.values()],
      refused,
      key: keyAfter(key, [...members.values()]),
    }
    members = new Map()
    refused = []
    key = part.key
    return part
  }
  for await (const line of lines) {
    if (line._tag === "Refused") refused.push(line)
    else members.set(line.user_id, line)
    if (members.size === mostMembers || refused.length === mostMembers) yield take()
  }
  if (members.size + refused.length > 0) yield take()
}
