/** Copies the packages' raised version to the bundled server's chart. */

import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const path = join(root, "examples/node-server/chart/Chart.yaml")

const manifest = await readFile(join(root, "packages/tenure/package.json"), "utf8")
const { version } = JSON.parse(manifest)
const chart = await readFile(path, "utf8")
await writeFile(path, chart.replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`))
