/**
 * A newcomer's path: packs everything into one file, installs it in an empty folder beside Express,
 * pastes the README's example, and calls all five endpoints.
 */

import { rmSync } from "node:fs"
import { tryExample } from "./app.js"
import { installedAsOne } from "./folders.js"

const folder = installedAsOne(["express"])
try {
  await tryExample(folder)
} finally {
  rmSync(folder, { recursive: true })
}
