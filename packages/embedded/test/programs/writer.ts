/**
 * Opens the folder that its argument names, and grants one membership after the other until it is told to end, or
 * fails. Prints "granted" and the user id when a call was answered, and "refused" and the reason if one fails.
 */

import { createTenure } from "@tenure/core"
import { embedded } from "../../src/index.ts"

const [path = ""] = process.argv.slice(2)

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const ending = new AbortController()
process.once("SIGTERM", () => ending.abort())

try {
  const tenure = await createTenure({
    stores: embedded({ path, durable: false }),
    webhooks: { dispatch: false },
    expiry: false,
  })
  try {
    await tenure.memberships.createProject("p1")
    for (let userId = 1000; !ending.signal.aborted; userId++) {
      const granted = { projectId: "p1", userId: String(userId), endDate: 4_000_000_000_000 }
      await tenure.memberships.grant(granted)
      say(`granted ${userId}`)
    }
  } finally {
    await tenure.close()
  }
} catch (fault) {
  say(`refused ${String(fault)}`)
}
