/** The time to import the core, in a process that has imported nothing yet. */

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import type { Section } from "../measurement.ts"
import { median } from "../rounds.ts"

const root = fileURLToPath(new URL("../../../..", import.meta.url))
const run = promisify(execFile)

const script = `
  const start = performance.now()
  await import("@tenure/core/Tenure")
  console.log(performance.now() - start)
`

/** Imports the core as it is published. */
const importOnce = async (): Promise<number> => {
  const options = { cwd: `${root}/packages/benchmark` }
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script], options)
  return Number(stdout)
}

/** The time of a cold start. */
export const start: Section = {
  name: "start",
  measure: async (settings) => {
    await run(`${root}/node_modules/.bin/tsc`, ["-b", `${root}/packages/core`])
    const times: Array<number> = []
    const count = settings.pick(15, 1)
    while (times.length < count) times.push(await importOnce())
    return {
      rows: [
        {
          measured: "import of the core, cold",
          unit: "ms",
          figure: median(times),
          target: { of: "figure", atMost: 100 },
        },
      ],
    }
  },
}
