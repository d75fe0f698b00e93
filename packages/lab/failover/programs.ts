/** The programs from Debian that a cluster consists of, and how they are run. */

import { type ChildProcess, spawn } from "node:child_process"
import { access, constants, open } from "node:fs/promises"
import type { Account } from "@tenure/testing/postgres-server"

/** The folder with PostgreSQL's programs. Patroni 3.0 supports 15 at most. */
export const postgresPrograms = "/usr/lib/postgresql/15/bin"

/** A program's path, by the package that installs it. */
export const programs = {
  "etcd-server": "/usr/bin/etcd",
  haproxy: "/usr/sbin/haproxy",
  patroni: "/usr/bin/patroni",
  pgbouncer: "/usr/sbin/pgbouncer",
  "postgresql-15": `${postgresPrograms}/postgres`,
} as const

/** A package with one of the programs. */
export type Package = keyof typeof programs

/** The packages that run a cluster; `pgbouncer` is for `--pooler` alone. */
export const clusterPackages: ReadonlyArray<Package> = [
  "etcd-server",
  "haproxy",
  "patroni",
  "postgresql-15",
]

/** Returns the packages whose program is not installed. */
export const findMissing = async (
  packages: ReadonlyArray<Package>,
): Promise<ReadonlyArray<Package>> => {
  const isMissing = await Promise.all(
    packages.map((name) =>
      access(programs[name], constants.X_OK).then(
        () => false,
        () => true,
      ),
    ),
  )
  return packages.filter((_, index) => isMissing[index])
}

/** A program that runs until it is killed. */
export interface Running {
  /** Kills it, as the death of its machine does. */
  readonly kill: () => Promise<void>
  readonly signal: (name: NodeJS.Signals) => void
}

/**
 * Starts a program. The system kills it when this process ends, whatever ends it: a started Patroni would
 * start PostgreSQL again and again.
 */
export const start = async (
  program: string,
  options: ReadonlyArray<string>,
  logFile: string,
  folder: string,
  account: Account | undefined,
): Promise<Running> => {
  const log = await open(logFile, "a")
  const child: ChildProcess = spawn("setpriv", ["--pdeathsig", "KILL", program, ...options], {
    ...account,
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, LC_ALL: "C.UTF-8" },
    // Ctrl-C on a terminal reaches this process alone.
    detached: true,
    stdio: ["ignore", log.fd, log.fd],
  })
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  await log.close()
  return {
    kill: () => {
      child.kill("SIGKILL")
      return ended
    },
    signal: (name) => void child.kill(name),
  }
}
