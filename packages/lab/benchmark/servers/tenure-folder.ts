/** Tenure in a folder that is deleted at the end. */

import { rmSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { embedded } from "@tenure/embedded"
import { serve } from "@tenure/node-http"
import { makeFilled } from "./filled.ts"
import { announcePort } from "./server.ts"

const path = await mkdtemp(join(tmpdir(), "tenure-benchmark-"))
process.on("exit", () => rmSync(path, { recursive: true }))

const { url } = await serve(await makeFilled({ stores: embedded({ path }) }))
announcePort(url)
