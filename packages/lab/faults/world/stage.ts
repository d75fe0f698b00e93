/** What scenarios begin with: programs, databases and receivers, which end with the scenario. */

import { execFile } from "node:child_process"
import { rmSync } from "node:fs"
import { mkdtemp, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { type PostgresServer, startPostgres } from "@tenure/testing/postgres-server"
import { freePort } from "./ports.ts"
import { type Receivers, startReceivers } from "./receivers.ts"
import { type Server, makeServer, unlimited } from "./server.ts"

/** Where a scenario takes place. */
export interface Stage {
  /** Has something end with the scenario, before all that began earlier. */
  readonly own: <A>(thing: A, end: (thing: A) => unknown) => A
  /** The bundled server. */
  readonly program: () => Promise<string>
  readonly postgres: (settings?: Readonly<Record<string, string>>) => Promise<PostgresServer>
  /** Starts a bundled server, whose limits no scenario reaches, with what a seed file has. */
  readonly server: (
    name: string,
    databaseUrl: string,
    seed: object,
    environment?: Readonly<Record<string, string>>,
  ) => Promise<Server>
  readonly receivers: () => Promise<Receivers>
  readonly end: () => Promise<void>
}

/** A scenario, which reads its own options. Returns whether all was as it has to be. */
export type Scenario = (stage: Stage, args: Array<string>) => Promise<boolean>

const cwd = fileURLToPath(new URL("../../../../examples/node-server", import.meta.url))

/** Bundles the server into a file that is removed when this process ends. */
const bundled = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-server-"))
  process.on("exit", () => rmSync(folder, { recursive: true }))
  await promisify(execFile)("npm", ["run", "bundle", "--", `--outdir=${folder}`], { cwd })
  return join(folder, "server.mjs")
}

/** Makes a stage, on which nothing is. */
export const makeStage = (): Stage => {
  const ends: Array<() => unknown> = []
  const own: Stage["own"] = (thing, end) => {
    ends.push(() => end(thing))
    return thing
  }
  let bundling: Promise<string> | undefined
  const program = () => (bundling ??= bundled())
  return {
    own,
    program,
    postgres: async (settings = {}) => own(await startPostgres({ settings }), ({ stop }) => stop()),
    receivers: async () => own(await startReceivers(), ({ close }) => close()),
    server: async (name, databaseUrl, seed, environment = {}) => {
      const file = await program()
      const seedFile = join(dirname(file), "seed.json")
      await writeFile(seedFile, JSON.stringify(seed))
      const server = makeServer(name, file, await freePort(), {
        DATABASE_URL: databaseUrl,
        SEED_FILE: seedFile,
        ...unlimited,
        ...environment,
      })
      own(server, ({ kill }) => kill())
      await server.start()
      return server
    },
    end: async () => {
      for (const end of ends.toReversed()) await end()
    },
  }
}
