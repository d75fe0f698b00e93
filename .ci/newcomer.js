/**
 * A newcomer's path: packs everything into one file, installs it in an empty folder beside Express,
 * pastes the README's example, and calls all five endpoints; has `tenure init` write the same; checks
 * types in every way to resolve modules, that there is one copy of everything, how large it is, and
 * how long the import takes. With npm, and with pnpm.
 */

import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { tryExample } from "./app.js"
import { installedAsOne, packOne, run } from "./folders.js"
import { exampleOf, root } from "./repository.js"

const tsc = join(root, "node_modules/typescript/bin/tsc")

/** The ways to resolve modules, by the value of TypeScript's `module`. */
const resolutions = { node16: "node16", nodenext: "nodenext", preserve: "bundler" }

const checkTypes = (folder) => {
  writeFileSync(join(folder, "app.ts"), exampleOf("README.md"))
  for (const [module, moduleResolution] of Object.entries(resolutions)) {
    const compilerOptions = {
      module,
      moduleResolution,
      types: ["node"],
      strict: true,
      noEmit: true,
    }
    const config = JSON.stringify({ compilerOptions, files: ["app.ts"] })
    writeFileSync(join(folder, "tsconfig.json"), config)
    execFileSync(process.execPath, [tsc, "-p", folder], { stdio: "inherit" })
  }
  rmSync(join(folder, "tsconfig.json"))
}

const checkCopies = (folder) => {
  const files = readdirSync(folder, { recursive: true })
  for (const name of ["effect", "@tenure/core"]) {
    const found = files.filter((path) => path.endsWith(`node_modules/${name}/package.json`))
    const copies = new Set(found.map((path) => realpathSync(join(folder, path))))
    if (copies.size !== 1) throw new Error(`copies of ${name}: ${[...copies].join(", ")}`)
  }
}

// Without sources and source maps. 0.8 MB of them declare the types of the HTTP API, an operation with about 20 kB.
const mostBytes = 6_600_000

const checkSize = (folder) => {
  const installed = join(folder, "node_modules/tenure")
  const entries = readdirSync(installed, { recursive: true, withFileTypes: true })
  const bytes = entries
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size)
    .reduce((sum, size) => sum + size, 0)
  if (bytes > mostBytes) throw new Error(`the packages have ${bytes} bytes`)
}

/** Whether an entry exports what its declarations say, and not what files of the package share. */
const checkNames = (folder) => {
  for (const path of ["tenure", "tenure/signature", "tenure/store"]) {
    const code = `process.stdout.write(Object.keys(await import("${path}")).join(" "))`
    const node = ["--input-type=module", "--eval", code]
    const names = execFileSync(process.execPath, node, { cwd: folder, encoding: "utf8" }).split(" ")
    const strange = names.filter((name) => name.length < 3)
    if (strange.length > 0) throw new Error(`${path} exports ${strange.join(", ")}`)
  }
}

const checkInit = (folder) => {
  run(folder, "npx", "tenure", "init")
  const written = readFileSync(join(folder, "tenure.js"), "utf8")
  if (written !== exampleOf("README.md")) throw new Error("tenure init wrote something else")
}

/** The processor time that an import takes: the least of ten, in microseconds. */
const timeOf = (folder, path) => {
  const code = `
    const before = process.cpuUsage()
    await import("${path}")
    const { system, user } = process.cpuUsage(before)
    process.stdout.write(String(system + user))
  `
  const node = ["--input-type=module", "--eval", code]
  const times = Array.from({ length: 10 }, () =>
    Number(execFileSync(process.execPath, node, { cwd: folder })),
  )
  return Math.min(...times)
}

// The import of Tenure has 1.5 times the processor time of that of Effect, and more on a machine that is
// busy with something else.
const mostTimesEffect = 2

const checkImport = (folder) => {
  const times = timeOf(folder, "tenure") / timeOf(folder, "effect/Effect")
  if (times > mostTimesEffect) throw new Error(`the import takes ${times} times that of Effect`)
}

const file = packOne()
try {
  for (const manager of ["npm", "pnpm"]) {
    const others = ["express", "@types/express", "@types/node"]
    const folder = installedAsOne(manager, file, others)
    try {
      checkInit(folder)
      checkTypes(folder)
      checkCopies(folder)
      await tryExample(folder)
      if (manager === "npm") {
        checkNames(folder)
        checkSize(folder)
        checkImport(folder)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
} finally {
  rmSync(dirname(file), { recursive: true })
}
