/** The user that PostgreSQL runs as, and the folders that this user can enter. */

import { readFile, realpath, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname } from "node:path"

/** A user of this machine. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/**
 * Returns the user that the server runs as, or `undefined` for the current user.
 *
 * PostgreSQL refuses to run as root. Root runs it as `nobody`.
 */
export const serverAccount = async (): Promise<Account | undefined> => {
  if (process.getuid?.() !== 0) return undefined
  const users = await readFile("/etc/passwd", "utf8")
  const [, uid, gid] = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(users) ?? []
  if (uid === undefined || gid === undefined) {
    throw new Error("PostgreSQL refuses to run as root, and /etc/passwd has no user nobody")
  }
  return { uid: Number(uid), gid: Number(gid) }
}

/** Tells whether a folder and its parents have the permission to enter for all users. */
const hasOpenPath = async (folder: string): Promise<boolean> => {
  const { mode } = await stat(folder)
  if ((mode & 0o001) === 0) return false
  const parent = dirname(folder)
  return parent === folder || hasOpenPath(parent)
}

/** Tells whether a folder exists and every user can enter it. */
export const isOpen = (folder: string): Promise<boolean> =>
  realpath(folder).then(hasOpenPath, () => false)

/** Returns a folder for temporary files that every user can enter. */
export const openTemporaryFolder = async (): Promise<string> => {
  for (const folder of [tmpdir(), "/tmp", "/var/tmp"]) {
    if (await isOpen(folder)) return folder
  }
  throw new Error(
    "PostgreSQL refuses to run as root, and the user nobody cannot enter the folder for temporary files: set TMPDIR to one that every user can enter",
  )
}
