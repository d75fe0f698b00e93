/** Writes the pages generated from the code: the reference, into the folder `reference`. */

import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { printAsyncApi } from "../../../packages/core/src/openapi/asyncapi.ts"
import { document } from "../../../packages/core/src/openapi/document.generated.ts"
import * as asyncapi from "./asyncapi.ts"
import * as openapi from "./openapi.ts"
import * as reference from "./reference.ts"
import { reference as folder, site } from "./repository.ts"

const files = join(site, "public")

rmSync(folder, { recursive: true, force: true })
rmSync(files, { recursive: true, force: true })
const modules = await reference.write(folder)
mkdirSync(files)
const asyncText = printAsyncApi(document, "")
writeFileSync(join(files, "openapi.json"), JSON.stringify(document))
writeFileSync(join(files, "asyncapi.json"), asyncText)
writeFileSync(join(folder, "http.md"), openapi.print(document, "/openapi.json"))
writeFileSync(join(folder, "events.md"), asyncapi.print(JSON.parse(asyncText), "/asyncapi.json"))
writeFileSync(join(folder, "modules.json"), JSON.stringify(modules))
