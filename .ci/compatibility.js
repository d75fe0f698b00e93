/**
 * What docs/start.md promises: installs all packages beside the supported versions of
 * TypeScript and Node, type-checks a consumer with each TypeScript, and runs the README's example
 * with each Node. Without `--all`, TypeScript is the oldest and the newest. An older Node gets an answer that says so.
 */

import { execFile } from "node:child_process"
import { globSync, rmSync, writeFileSync } from "node:fs"
import { join, matchesGlob } from "node:path"
import { promisify } from "node:util"
import { tryExample } from "./app.js"
import { installed } from "./folders.js"
import { exampleOf, packages, root } from "./repository.js"

const [oldest, ...between] = ["5.7", "5.8", "5.9", "6.0"]
const newest = "7.0"

const typescripts = [oldest, ...(process.argv.includes("--all") ? between : []), newest]

// The oldest and the newest; the tests run with one between.
const nodes = ["22.19", "26"]

const tooOld = "20"

const dependencies = [
  "effect@4",
  "@electric-sql/pglite@0.5.16",
  "better-auth@1",
  "drizzle-orm@0.45",
  "express@5",
  "fastify@5",
  "ioredis@6",
  "kysely@0.29",
  "stripe@23",
  "@types/express@5",
  "@types/node@22",
  ...typescripts.map((version) => `typescript-${version}@npm:typescript@${version}`),
  ...[tooOld, ...nodes].map((version) => `node-${version}@npm:node@${version}`),
]

/** The paths for which a path of `exports` stands, without those that `exports` hides. */
const matches = ({ folder, manifest: { exports } }, path) => {
  if (path !== "./*") return [path]
  const exclude = Object.keys(exports).filter((other) => exports[other] === null)
  return globSync("./**/*.ts", { cwd: join(root, "packages", folder, "src") })
    .map((file) => `./${file.replace(".ts", "")}`)
    .filter((file) => !exclude.some((pattern) => matchesGlob(file, pattern)))
}

/** Every path by which a package can be imported. */
const importPaths = (one) =>
  Object.keys(one.manifest.exports)
    .filter((path) => one.manifest.exports[path] !== null)
    .flatMap((path) => matches(one, path))
    .map((path) => one.manifest.name + path.slice(1))

const exportAll = (paths) => paths.map((path, at) => `export * as m${at} from "${path}"\n`).join("")

/** Tells what imports Drizzle or Better Auth, whose declarations no TypeScript accepts without `skipLibCheck`. */
const isLoose = (path) => /\/(drizzle|better-auth)(\/|$)/.test(path)

/** The start of the names of files that import these. */
const loose = "loose-"

/** Writes modules that import everything, and the examples of the READMEs. */
const writeConsumer = (folder) => {
  const paths = packages.flatMap(importPaths)
  const examples = ["README.md", ...packages.map((one) => `packages/${one.folder}/README.md`)]
  const files = {
    "everything.ts": exportAll(paths.filter((path) => !isLoose(path))),
    [`${loose}everything.ts`]: exportAll(paths.filter(isLoose)),
    ...Object.fromEntries(
      examples.map((path, at) => [
        `${isLoose(path) ? loose : ""}example-${at}.ts`,
        exampleOf(path),
      ]),
    ),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return Object.keys(files)
}

const documented = JSON.parse(exampleOf("docs/start.md", "json")).compilerOptions

const strict = { ...documented, skipLibCheck: false }

/** The settings of consumers, by the names of their files. */
const settings = {
  "tsconfig.nodenext.json": strict,
  "tsconfig.bundler.json": { ...strict, module: "preserve", moduleResolution: "bundler" },
}

const withoutDom = {
  "tsconfig.withoutDom.json": {
    ...documented,
    lib: documented.lib.filter((name) => name !== "DOM"),
    skipLibCheck: true,
  },
}

const writeSettings = (folder, files) => {
  for (const [name, options] of Object.entries({ ...settings, ...withoutDom })) {
    const compilerOptions = { ...options, exactOptionalPropertyTypes: true, noEmit: true }
    const checked = files.filter((file) => options.skipLibCheck || !file.startsWith(loose))
    writeFileSync(join(folder, name), JSON.stringify({ compilerOptions, files: checked }))
  }
}

const run = promisify(execFile)

/** Type-checks with one TypeScript; throws what it finds wrong. */
const check = async (folder, version, projects) => {
  const tsc = join("node_modules", `typescript-${version}`, "bin", "tsc")
  const found = await Promise.all(
    projects.map((project) =>
      run(process.execPath, [tsc, "-p", project], { cwd: folder }).then(
        () => "",
        ({ stdout }) => `TypeScript ${version}, ${project}:\n${stdout}`,
      ),
    ),
  )
  if (found.join("") !== "") throw new Error(found.join(""))
}

/** Imports every module, which those of the suites allow in vitest alone, as CommonJS code does. */
const importAll = (folder, node) => {
  const paths = packages
    .flatMap(importPaths)
    .filter((path) => !/\/(conformance|postgres-server)$/.test(path))
  const code = paths.map((path) => `require("${path}")\n`).join("")
  return run(node, ["--input-type=commonjs", "--eval", code], { cwd: folder })
}

/** Runs the command with a Node that is too old. */
const checkRefusal = async (folder, node) => {
  const bin = join("node_modules", "tenure", "dist", "bin", "tenure.js")
  const said = await run(node, [bin, "--help"], { cwd: folder }).then(
    () => "nothing",
    ({ stderr }) => stderr,
  )
  if (!said.startsWith("tenure needs Node")) throw new Error(`Node ${tooOld} says ${said}`)
}

const nodeOf = (folder, version) => join(folder, "node_modules", `node-${version}`, "bin", "node")

const folder = installed(
  packages.map((one) => one.manifest.name),
  dependencies,
)
try {
  writeSettings(folder, writeConsumer(folder))
  for (const version of typescripts) await check(folder, version, Object.keys(settings))
  await check(folder, newest, Object.keys(withoutDom))
  for (const version of nodes) {
    const node = nodeOf(folder, version)
    await importAll(folder, node)
    await tryExample(folder, node)
  }
  await checkRefusal(folder, nodeOf(folder, tooOld))
} finally {
  rmSync(folder, { recursive: true })
}
