/** pgbench, which comes with PostgreSQL, as the yardstick. */

import { execFile } from "node:child_process"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Sample } from "./rounds.ts"

const run = promisify(execFile)

/** Whether pgbench is installed. */
export const isInstalled = (): Promise<boolean> =>
  run("pgbench", ["--version"]).then(
    () => true,
    () => false,
  )

/** Runs a script with this many clients. Returns transactions per second. */
export const pgbench = async (
  url: string,
  script: string,
  clients: number,
  seconds: number,
): Promise<Sample> => {
  const file = join(await mkdtemp(join(tmpdir(), "pgbench-")), "script.sql")
  await writeFile(file, script)
  const options = `-n -M prepared -j 2 -c ${clients} -T ${Math.max(1, Math.round(seconds))} -f ${file}`
  const { stdout } = await run("pgbench", [...options.split(" "), url])
  return { rate: Number(/tps = ([0-9.]+)/.exec(stdout)?.[1]), cpu: NaN }
}
