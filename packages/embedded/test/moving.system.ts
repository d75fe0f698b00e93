/** Moving from a folder to a server, and back. */

import { execFile } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { describe, expect, inject, it } from "vitest"
import { embedded } from "../src/index.ts"
import { folderWithDatabase } from "./folders.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const program = fileURLToPath(new URL("../../postgres/src/bin/migrate.ts", import.meta.url))

// From this run: the server may have tables from an earlier one, which are not empty.
const schema = `moved_${randomUUID().replaceAll("-", "")}`

const move = (from: string, to: string) =>
  promisify(execFile)(process.execPath, [
    "-C",
    "@tenure/source",
    program,
    "--from",
    from,
    "--to",
    to,
    schema,
  ])

const member = { projectId: "p1", userId: "0001" }

// Without attempts to deliver, which would change what the webhook says while a database is moved.
const open = (url: string) =>
  createTenure({
    webhooks: { dispatch: false },
    stores: url.startsWith("file:")
      ? embedded({ path: url.slice("file:".length), schema, durable: false })
      : postgres({ url, schema }),
  })

/** What a database's API says about everything, which asking does not change: no key is used. */
const contentOf = async (url: string) => {
  const tenure = await open(url)
  try {
    return {
      keys: await tenure.apiKeys.list(),
      members: await tenure.memberships.list({ projectId: "p1", limit: 1000 }),
      history: await tenure.memberships.history(member),
      webhooks: await tenure.webhooks.list({ projectId: "p1" }),
    }
  } finally {
    await tenure.close()
  }
}

describe("tenure-migrate --from --to", () => {
  it("moves everything from a folder to a server and back, into empty tables only", async () => {
    const folder = `file:${await folderWithDatabase()}`
    const server = inject("databaseUrl")
    const tenure = await open(folder)
    await tenure.memberships.createProject("p1")
    const members = Array.from({ length: 500 }, (_, index) => ({
      userId: String(index).padStart(4, "0"),
      endDate: 4_000_000_000_000 + index,
    }))
    await tenure.memberships.import({ projectId: "p1", memberships: members })
    await tenure.webhooks.create({ projectId: "p1", url: "https://example.com/hooks" })
    await tenure.memberships.extend({ ...member, endDate: 4_100_000_000_000 })
    const { id, token } = await tenure.apiKeys.issue({ projects: ["p1"] })
    await tenure.close()
    const content = await contentOf(folder)

    const { stderr, stdout } = await move(folder, server)
    expect(stderr).toContain("memberships…\n")
    expect(stdout).toMatch(/^memberships: 500 rows$/m)
    expect(stdout).toMatch(/Every table has the same rows at both ends\.\n$/)
    expect(await contentOf(server)).toEqual(content)

    await expect(move(folder, server)).rejects.toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^The table \w+ of the target has rows already\./),
    })

    const onServer = await open(server)
    await onServer.memberships.extend({ ...member, endDate: 4_200_000_000_000 })
    await onServer.close()
    const later = await contentOf(server)
    expect(later.history.length).toBe(content.history.length + 1)
    const other = `file:${await folderWithDatabase()}`
    await move(server, other)
    expect(await contentOf(other)).toEqual(later)
    const onOther = await open(other)
    expect(await onOther.apiKeys.authenticate(token)).toMatchObject({ id })
    await onOther.close()
  })
})
