/**
 * A host that changes memberships in a folder until it is killed, and prints the reason for each change
 * that was answered: `node changing.ts FOLDER SEED`.
 */

import { createTenure } from "@tenure/core"
import { embedded } from "@tenure/embedded"
import { random } from "../random.ts"
import { changeOf, userIds } from "./folders.ts"

const [, , path = "", text = ""] = process.argv
const seed = Number(text)

const { memberships } = await createTenure({
  stores: embedded({ path }),
  webhooks: { dispatch: false },
})

/** Changes a member again and again. */
const change = async (userId: string): Promise<never> => {
  const choose = random("change", seed, userId)
  for (let number = 1; ; number++) {
    const asked = changeOf(seed, userId, number)
    // Only members who exist can be extended.
    if (number === 1 || choose.chance(0.3)) await memberships.grant(asked)
    else await memberships.extend(asked)
    process.stdout.write(`${asked.reason}\n`)
  }
}

await Promise.all(userIds.map(change))
