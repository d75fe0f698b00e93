/** PgBouncer, if it is installed or can be had from Debian's or Ubuntu's packages. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { chmod, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { accepts, freePort } from "@tenure/testing/conformance"
import { serverAccount } from "@tenure/testing/postgres-server"

const run = promisify(execFile)

/** The program, and its environment. */
interface Program {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
}

// Kept for the next run.
const unpacked = join(tmpdir(), "tenure-pgbouncer")

const packages = ["pgbouncer", "libc-ares2", "libevent-2.1-7"]

const triplets: Readonly<Record<string, string>> = {
  x64: "x86_64-linux-gnu",
  arm64: "aarch64-linux-gnu",
}

/** Unpacks the packages, without installing them. */
const unpack = async (): Promise<void> => {
  const temporary = await mkdtemp(`${unpacked}-`)
  try {
    await chmod(temporary, 0o755)
    await run("apt-get", ["download", "--quiet", ...packages], { cwd: temporary, timeout: 30_000 })
    for (const file of await readdir(temporary)) {
      await run("dpkg-deb", ["--extract", join(temporary, file), temporary])
    }
    // At once, so that an interruption leaves nothing half done.
    await rename(temporary, unpacked)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

/** Returns the program, or why there is none. */
const find = async (): Promise<Program | string> => {
  const installed = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin"]
    .map((folder) => join(folder, "pgbouncer"))
    .find((path) => existsSync(path))
  if (installed !== undefined) return { path: installed, env: {} }
  try {
    if (!existsSync(unpacked)) await unpack()
    const path = join(unpacked, "usr/sbin/pgbouncer")
    const libraries = join(unpacked, "usr/lib", triplets[process.arch] ?? process.arch)
    const env = { LD_LIBRARY_PATH: libraries }
    await run(path, ["--version"], { env })
    return { path, env }
  } catch (error) {
    return `it is not installed, and cannot be unpacked here: ${String(error).split("\n")[0]}`
  }
}

/** The program, or why there is none. */
export const pgbouncer = await find()

/** A running PgBouncer. */
export interface Pooler {
  /** The database's URL through the pooler. */
  readonly url: string
  readonly stop: () => Promise<void>
}

/** Starts a PgBouncer with its default settings in front of a database. */
export const startPooler = async (
  { env, path }: Program,
  mode: "session" | "transaction",
  database: URL,
): Promise<Pooler> => {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), "tenure-pooler-"))
  await chmod(folder, 0o755)
  const file = join(folder, "pgbouncer.ini")
  await writeFile(
    file,
    `[databases]
* = host=${database.hostname} port=${database.port} user=${database.username} password=${database.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`,
  )
  // The program refuses root, and the current folder may be one that the account cannot enter.
  const child = spawn(path, ["--quiet", file], {
    ...(await serverAccount()),
    cwd: folder,
    env,
    stdio: "ignore",
  })
  const ended = once(child, "exit")
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error("PgBouncer does not start")
  }
  const url = new URL(database)
  url.port = String(port)
  return {
    url: url.href,
    stop: async () => {
      child.kill("SIGKILL")
      await ended
      await rm(folder, { recursive: true })
    },
  }
}
