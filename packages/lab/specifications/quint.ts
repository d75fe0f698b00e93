/** Runs Quint, which checks specifications by examples. */

import { execFile } from "node:child_process"
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Specification, type Trace, printTraces } from "./traces.ts"

const require = createRequire(import.meta.url)
const program = join(
  dirname(require.resolve("@informalsystems/quint/package.json")),
  "dist/src/cli.js",
)

/** How Quint has ended. */
export interface Checked {
  readonly isRight: boolean
  readonly output: string
}

const quint = (...given: ReadonlyArray<string>): Promise<Checked> =>
  new Promise((resolve) => {
    // The other backend is a program that Quint downloads.
    const args = [program, ...given, "--backend=typescript"]
    execFile(process.execPath, args, { maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      resolve({ isRight: error === null, output: stdout + stderr })
    })
  })

/** A specification's file. */
export const fileOf = (name: Specification): string =>
  fileURLToPath(new URL(`${name}.qnt`, import.meta.url))

/** Runs a specification by random steps, and looks whether it stays safe. */
export const checkSafety = (file: string, samples: number): Promise<Checked> =>
  quint("run", file, "--invariant=safe", `--max-samples=${samples}`, "--max-steps=20", "--seed=1")

/** Checks whether simulated runs are runs of a specification. */
export const checkTraces = async (
  name: Specification,
  traces: ReadonlyArray<Trace>,
): Promise<Checked> => {
  const folder = await mkdtemp(join(tmpdir(), "traces-"))
  try {
    await copyFile(fileOf(name), join(folder, `${name}.qnt`))
    const file = join(folder, "traces.qnt")
    await writeFile(file, printTraces(name, traces))
    return await quint("test", file, "--main=traces", "--max-samples=1")
  } finally {
    await rm(folder, { recursive: true })
  }
}
