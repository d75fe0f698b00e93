/** A standby server, which follows another and can take its place. */

import { execFile } from "node:child_process"
import { appendFile, cp, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { freePort } from "@tenure/testing/conformance"
import { type PostgresServer, makeHome, programsFor, run } from "@tenure/testing/postgres-server"

/** A running standby. */
export interface Standby {
  readonly url: string
  /** Makes it a primary, and returns when it accepts changes. */
  readonly promote: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Starts a standby from a copy of a server's data. The server is down for that. */
export const follow = async (primary: PostgresServer): Promise<Standby> => {
  const home = await makeHome()
  const programs = await programsFor(home)
  const control = (...options: ReadonlyArray<string>) =>
    run(programs, "pg_ctl", [`--pgdata=${home.dataDirectory}`, ...options], home.account)

  await primary.halt()
  await cp(primary.dataDirectory, home.dataDirectory, { recursive: true })
  await primary.resume()

  const port = await freePort()
  const source = new URL(primary.url)
  const settings = [
    `port = ${port}`,
    `primary_conninfo = 'host=${source.hostname} port=${source.port} user=tenure password=tenure'`,
  ]
  await appendFile(join(home.dataDirectory, "postgresql.conf"), `${settings.join("\n")}\n`)
  await writeFile(join(home.dataDirectory, "standby.signal"), "")
  if (home.account !== undefined) {
    const { gid, uid } = home.account
    await promisify(execFile)("chown", ["--recursive", `${uid}:${gid}`, home.folder])
  }
  await control("start", `--log=${home.logFile}`)

  const url = new URL(primary.url)
  url.port = String(port)
  return { url: url.href, promote: () => control("promote"), stop: home.release }
}
