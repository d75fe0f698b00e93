/** Tenure by itself, with authentication and all three limits: in memory, in a folder, or on PostgreSQL. */

import { rmSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { embedded } from "@tenure/embedded"
import { serve } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import { logAccess } from "@tenure/server/log"
import { type FilledOptions, makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"
import { tokensOf } from "./workload.ts"

const [, , kind = "memory", url = "", schema, keys] = process.argv

const options: Readonly<Record<string, () => FilledOptions | Promise<FilledOptions>>> = {
  memory: () => ({}),
  // With the bundled server's access log.
  logged: () => ({ onResponse: logAccess }),
  // It counts and times what it does.
  metrics: () => ({ metrics: true }),
  folder: async () => {
    const path = await mkdtemp(join(tmpdir(), "tenure-benchmark-"))
    process.on("exit", () => rmSync(path, { recursive: true }))
    return { stores: embedded({ path }) }
  },
  postgres: () => ({
    stores: postgres({ url, schema }),
    keys: tokensOf(Number(keys)),
    webhooks: { allowedNetworks: ["127.0.0.0/8"] },
  }),
}

const server = await serve(await makeFilled(await options[kind]?.()))
announcePort(server.url)
