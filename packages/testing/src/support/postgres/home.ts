/** The folder of one server: its data, its log and, where needed, its programs. */

import { execFile } from "node:child_process"
import { chown, cp, mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { type Account, isOpen, openTemporaryFolder, serverAccount } from "./account.ts"
import { installedPrograms } from "./programs.ts"

/** Where a server lives. */
export interface Home {
  readonly folder: string
  readonly dataDirectory: string
  readonly passwordFile: string
  readonly logFile: string
  readonly account: Account | undefined
}

/** Makes an empty folder that belongs to the account of the server. */
export const makeHome = async (): Promise<Home> => {
  const account = await serverAccount()
  const parent = account === undefined ? tmpdir() : await openTemporaryFolder()
  const folder = await mkdtemp(join(parent, "tenure-postgres-"))
  if (account !== undefined) await chown(folder, account.uid, account.gid)
  return {
    folder,
    dataDirectory: join(folder, "data"),
    passwordFile: join(folder, "password"),
    logFile: join(folder, "log"),
    account,
  }
}

/**
 * Returns the folder of the programs, as the account of the server can reach it.
 *
 * An installation below a closed folder, such as `/root`, is copied into the home first.
 */
export const programsFor = async ({ folder, account }: Home): Promise<string> => {
  const installed = installedPrograms()
  if (account === undefined || (await isOpen(installed))) return installed
  const copy = join(folder, "programs")
  await cp(installed, copy, { recursive: true, verbatimSymlinks: true })
  await promisify(execFile)("chmod", ["-R", "a+rX", copy])
  return copy
}
