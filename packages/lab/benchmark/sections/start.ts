/** Cold starts: the time to import the core, and to start the bundled server, and what it holds then. */

import { execFile, fork } from "node:child_process"
import { rmSync } from "node:fs"
import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { schema } from "../database.ts"
import type { Row, Section } from "../measurement.ts"
import { median } from "../rounds.ts"

const root = fileURLToPath(new URL("../../../..", import.meta.url))
const run = promisify(execFile)

const script = `
  const start = performance.now()
  await import("@tenure/core")
  console.log(performance.now() - start)
`

/** Imports the core as it is published, in a process that has imported nothing yet. */
const importCore = async (): Promise<number> => {
  const options = { cwd: `${root}/packages/lab` }
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], options)
  return Number(stdout)
}

/** Tells how much memory the process holds when it is asked. */
const telling = `process.on("message", () => process.send(process.memoryUsage.rss()))`

interface Started {
  /** Until the process listens. */
  readonly millis: number
  readonly megabytes: number
}

// What the start has left behind is collected by then.
const idleMillis = 1000

/** Starts the bundled server as `npm start` does, and stops it. */
const startServer = async (environment: Readonly<Record<string, string>>): Promise<Started> => {
  const begin = performance.now()
  const child = fork(`${root}/examples/node-server/dist/server.mjs`, {
    execArgv: ["--import", `data:text/javascript,${encodeURIComponent(telling)}`],
    env: { PATH: process.env["PATH"], PORT: "0", DRAIN_DELAY: "0", ...environment },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  })
  const ended = new Promise<never>((_, reject) => {
    child.on("exit", () => reject(new Error("the server has ended")))
  })
  const millis = await Promise.race([
    ended,
    new Promise<number>((resolve) => {
      child.stdout?.on("data", (text) => {
        if (String(text).includes("Tenure listens on")) resolve(performance.now() - begin)
      })
    }),
  ])
  await sleep(idleMillis)
  const bytes = new Promise<number>((resolve) => child.once("message", resolve))
  child.send({})
  const megabytes = (await Promise.race([ended, bytes])) / 2 ** 20
  child.kill("SIGTERM")
  await ended.catch(() => undefined)
  return { millis, megabytes }
}

/** Rows for a place, with the most that a server should need. */
const rowsOf = (
  where: string,
  starts: ReadonlyArray<Started>,
  most: Partial<Started> = {},
): ReadonlyArray<Row> => {
  const row = (measured: string, unit: string, name: keyof Started): Row => {
    const atMost = most[name]
    return {
      measured: `${measured}, ${where}`,
      unit,
      figure: median(starts.map((one) => one[name])),
      ...(atMost !== undefined && { target: { of: "figure", atMost } }),
    }
  }
  return [
    row("start of the bundled server", "ms", "millis"),
    row("memory of the idle server", "MB", "megabytes"),
  ]
}

const profile = "Two thirds of the time are the import of Effect alone."

export const start: Section = {
  name: "start",
  measure: async (settings) => {
    await run("npm", ["run", "build"], { cwd: root })
    const { url } = await settings.database()
    const path = await mkdtemp(join(tmpdir(), "tenure-benchmark-"))
    process.on("exit", () => rmSync(path, { recursive: true }))
    const database = { DATABASE_URL: url, DATABASE_SCHEMA: schema }
    const folder = { DATABASE_URL: `file:${path}` }
    // Creates the tables.
    for (const environment of [database, folder]) await startServer(environment)
    const places = [
      {
        where: "in memory",
        in: { DATABASE_URL: "memory:" },
        most: { millis: 500, megabytes: 100 },
      },
      { where: "on PostgreSQL", in: database, most: { millis: 500, megabytes: 70 } },
      // PGlite is loaded, which takes most time and memory.
      { where: "in a folder", in: folder, most: {} },
    ].map((place) => ({ ...place, starts: new Array<Started>() }))
    const imports: Array<number> = []
    for (let turn = 0; turn < settings.pick(15, 1); turn++) {
      imports.push(await importCore())
      for (const place of places) place.starts.push(await startServer(place.in))
    }
    return {
      rows: [
        {
          measured: "import of the core, cold",
          unit: "ms",
          figure: median(imports),
          target: { of: "figure", atMost: 100, profile },
        },
        ...places.flatMap(({ most, starts, where }) => rowsOf(where, starts, most)),
      ],
    }
  },
}
