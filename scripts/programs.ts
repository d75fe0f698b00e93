/**
 * Bundles the server, as `npm start` does, and the command once for all tests that start them: from their sources, they take
 * three times as long. With `SERVER_FILE`, the tests run that server, such as the one `npm run build` writes.
 */

import { execFile } from "node:child_process"
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { build } from "esbuild"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly serverFile: string
    readonly commandFile: string
  }
}

const pathOf = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

const bundleServer = async (outdir: string): Promise<string> => {
  const given = process.env["SERVER_FILE"]
  if (given !== undefined) return given
  const cwd = pathOf("examples/node-server")
  await promisify(execFile)(process.execPath, ["scripts/bundle.ts", `--outdir=${outdir}`], { cwd })
  return join(outdir, "server.mjs")
}

const bundleCommand = async (folder: string): Promise<string> => {
  const outdir = join(folder, "dist/commands")
  await mkdir(outdir, { recursive: true })
  // The command finds its version and templates as in its package.
  await symlink(pathOf("packages/cli/package.json"), join(folder, "dist/package.json"))
  await symlink(pathOf("packages/cli/templates"), join(folder, "templates"))
  await build({
    entryPoints: [pathOf("packages/tenure/src/bin/tenure.ts")],
    bundle: true,
    splitting: true,
    external: ["@electric-sql/pglite"],
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    target: "node22.19",
    conditions: ["@tenure/source"],
    logLevel: "warning",
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    outdir,
  })
  return join(outdir, "tenure.mjs")
}

export default async ({ provide }: TestProject): Promise<() => Promise<void>> => {
  // Beside the dependencies outside the bundle.
  const folder = await mkdtemp(pathOf("examples/node-server/node_modules/.tenure-"))
  const [serverFile, commandFile] = await Promise.all([
    bundleServer(join(folder, "server")),
    bundleCommand(join(folder, "command")),
  ])
  provide("serverFile", serverFile)
  provide("commandFile", commandFile)
  return () => rm(folder, { recursive: true })
}
