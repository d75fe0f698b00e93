/**
 * The pages of hosts and libraries with the packages as they would be published: copies the documentation
 * and its tests to a folder outside the repository, installs all packages there from tarballs, and runs the
 * tests of the pages.
 */

import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, matchesGlob } from "node:path"
import { packAll, run } from "./folders.js"
import { root } from "./repository.js"

/** What the tests of the pages read. None of it is a source of a package. */
const copied = [
  "README.md",
  "tsconfig.base.json",
  "docs/*",
  "docs/{hosts,internals,test}/**",
  "packages/*/README.md",
  "packages/tenure/tenure.prisma",
  // A server, certificates and a client for the tests.
  "packages/postgres/test/{certificates,global-setup}.ts",
  "packages/postgres/test/within/prisma-client.ts",
  "packages/stripe/test/{objects,stripe-account}.ts",
  "packages/testing/src/support/*.ts",
]

const pages = ["examples", "feed", "joins", "realtime", "transactions", "webhooks"]

const pnpm = ["npx", "--yes", "pnpm@12.21.0", "--loglevel=error"]

const copyInto = (folder) => {
  const listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
  const files = execFileSync("git", listing, { cwd: root, encoding: "utf8" }).split("\0")
  for (const file of files.filter((path) => copied.some((one) => matchesGlob(path, one)))) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
}

const manifestOf = (path) => JSON.parse(readFileSync(join(root, path, "package.json"), "utf8"))

/** What the sources have from their own workspace is installed in the root, as programs of users have it. */
const writeManifest = (folder, tarballs) => {
  const { version } = manifestOf("node_modules/vitest")
  const ofOthers = ["postgres", "testing"].map((name) => manifestOf(`packages/${name}`))
  const wanted = Object.assign(
    {},
    ...ofOthers.map(({ devDependencies }) => devDependencies),
    manifestOf("docs").devDependencies,
    { vitest: version },
  )
  // Nobody can install a package that is not published.
  const dependencies = Object.fromEntries(
    Object.entries(wanted)
      .filter(([name, range]) => name in tarballs || !range.startsWith("workspace:"))
      .map(([name, range]) => [name, name in tarballs ? `file:${tarballs[name]}` : range]),
  )
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ private: true, type: "module", dependencies }),
  )
  const workspace = readFileSync(join(root, "pnpm-workspace.yaml"), "utf8")
  const overrides = Object.entries(tarballs)
    .map(([name, file]) => `  "${name}": "file:${file}"\n`)
    .join("")
  writeFileSync(
    join(folder, "pnpm-workspace.yaml"),
    workspace.replace(/^packages:\n(  - .*\n)+/m, "packages: []\n") + overrides,
  )
  // They name packages of the repository.
  for (const file of ["package.json", "test/tsconfig.json"]) rmSync(join(folder, "docs", file))
}

const config = `import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    root: "docs",
    globalSetup: ["../packages/postgres/test/global-setup.ts"],
    include: [${pages.map((page) => `"test/${page}.test.ts"`).join(", ")}],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    isolate: false,
  },
})
`

const show = (cwd, ...args) =>
  execFileSync(process.execPath, args, { cwd, stdio: ["ignore", "inherit", "inherit"] })

const folder = mkdtempSync(join(tmpdir(), "outside-"))
try {
  const packed = join(folder, "tarballs")
  mkdirSync(packed)
  copyInto(folder)
  writeManifest(folder, packAll(packed))
  writeFileSync(join(folder, "vitest.config.js"), config)
  run(folder, ...pnpm, "install")
  const hosts = join(folder, "docs/hosts/test")
  run(hosts, ...pnpm, "install", "--frozen-lockfile")

  const vitest = join(folder, "node_modules/vitest/vitest.mjs")
  show(folder, vitest, "run", "--config", "vitest.config.js")
  show(folder, join(folder, "node_modules/typescript/bin/tsc"), "-p", hosts)
  show(hosts, vitest, "run", "--config", "vitest.config.ts")
} finally {
  rmSync(folder, { recursive: true })
}
