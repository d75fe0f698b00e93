/** All stores answer the same to random steps: in memory, in a folder and on PostgreSQL. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, inject, it, onTestFinished } from "vitest"
import { playSeed, report } from "../../fuzz/stores/run.ts"
import { inFolder, inMemory, onServer } from "../../fuzz/stores/sides.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

it("all stores answer the same", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tenure-fuzz-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const stores = [inMemory, await inFolder(folder), await onServer(inject("databaseUrl"))]
  const { difference, requests, valid } = await playSeed(stores, Date.now(), 1, 40)
  for (const store of stores) await store.close()
  expect(difference && report(1, difference)).toBeUndefined()
  expect(requests).toBeGreaterThan(25)
  expect(valid / requests).toBeGreaterThan(0.3)
})
