/**
 * A newcomer's path: packs what is built, installs it in an empty folder beside Express, pastes the
 * README's example, and calls all five endpoints.
 */

import { rmSync } from "node:fs"
import { tryExample } from "./app.js"
import { installed } from "./folders.js"

const folder = installed(["core", "memory", "node-http", "express"], ["effect", "express"])
try {
  await tryExample(folder)
} finally {
  rmSync(folder, { recursive: true })
}
