/** Bundles the server and the migration program into a file each, beside third-party licences. */

import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { build } from "esbuild"
import { noticesOf } from "../../../scripts/notices.ts"

const { values } = parseArgs({
  options: {
    outdir: { type: "string", default: "dist" },
    // By default, the packages' sources; `import` takes their published files.
    conditions: { type: "string", default: "@tenure/source" },
  },
})

const { metafile } = await build({
  entryPoints: { server: "src/main.ts", migrate: "src/migrate.ts" },
  bundle: true,
  external: ["@electric-sql/pglite"],
  platform: "node",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  target: "node22.19",
  conditions: [values.conditions],
  logLevel: "warning",
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
  outdir: values.outdir,
  metafile: true,
})

const contained = Object.values(metafile.outputs).flatMap(({ inputs }) =>
  Object.entries(inputs).flatMap(([file, { bytesInOutput }]) => (bytesInOutput > 0 ? [file] : [])),
)
await writeFile(join(values.outdir, "NOTICES.txt"), await noticesOf(contained))
