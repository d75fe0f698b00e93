/**
 * The image of the bundled server, without Docker: performs the steps of its Dockerfile in a temporary
 * folder, and runs the result as Docker would, with nothing else in its file system, which is
 * read-only, as the user of the image. The base image is stood in for by this Node and its libraries.
 */

import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, matchesGlob } from "node:path"
import { createInterface } from "node:readline"
import { freePort } from "../packages/testing/src/support/free-port.ts"
import { startPostgres } from "../packages/testing/src/support/postgres-server.ts"
import { root } from "./repository.js"

const dockerfile = "examples/node-server/Dockerfile"

/** The instructions of each stage, as [name, arguments]. */
const stagesOf = (text) =>
  text
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .split(/^(?=FROM )/m)
    .slice(1)
    .map((stage) => [...stage.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, name, rest]) => [name, rest]))

/** The files that are sent to Docker: those of the repository that the list does not exclude. */
const contextOf = () => {
  const excluded = readFileSync(join(root, `${dockerfile}.dockerignore`), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
  const isExcluded = (file) =>
    excluded.some((pattern) => matchesGlob(file, pattern) || matchesGlob(file, `${pattern}/**`))
  const listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
  const files = execFileSync("git", listing, { cwd: root, encoding: "utf8" }).split("\0")
  return files.filter((file) => file !== "" && !isExcluded(file))
}

const copy = (from, to) => {
  mkdirSync(dirname(to), { recursive: true })
  cpSync(from, to, { recursive: true, dereference: true })
}

/** Performs the steps of the first stage in a folder. */
const build = (stage, folder) => {
  let workdir = folder
  for (const [name, rest] of stage) {
    if (name === "WORKDIR") mkdirSync((workdir = join(folder, rest)), { recursive: true })
    else if (name === "COPY" && rest === ". .") {
      for (const file of contextOf()) copy(join(root, file), join(workdir, file))
    } else if (name === "RUN") {
      execFileSync("sh", ["-c", rest], { cwd: workdir, stdio: ["ignore", "ignore", "inherit"] })
    } else if (name !== "FROM") throw new Error(`this step is not known here: ${name} ${rest}`)
  }
}

/** Puts Node and the libraries that it needs where the base image has them. */
const addBase = (image) => {
  const libraries = execFileSync("ldd", [process.execPath], { encoding: "utf8" }).match(/\/\S+/g)
  for (const library of libraries) copy(library, join(image, library))
  copy(process.execPath, join(image, "nodejs/bin/node"))
}

/** Performs the steps of the last stage, and returns what it says of the process. */
const assemble = (stage, built, image) => {
  const config = { env: {}, user: undefined, command: [], health: [] }
  for (const [name, rest] of stage) {
    if (name === "ENV") Object.assign(config.env, Object.fromEntries([rest.split("=")]))
    else if (name === "USER") config.user = rest
    else if (name === "CMD") config.command = JSON.parse(rest)
    else if (name === "HEALTHCHECK") config.health = JSON.parse(rest.slice(rest.indexOf("[")))
    else if (name === "COPY") {
      const [, from, to] = rest.split(" ")
      copy(join(built, from), join(image, to))
    }
  }
  return config
}

const sudo = process.getuid() === 0 ? [] : ["sudo", "--non-interactive"]
if (sudo.length > 0 && spawnSync(sudo[0], [...sudo.slice(1), "true"]).status !== 0) {
  process.stdout.write("The image is not checked, because this needs root.\n")
  process.exit(0)
}

const script = `
  image=$1 user=$2
  shift 2
  mount --bind "$image" "$image"
  mount --options remount,bind,ro "$image"
  mount --types proc proc "$image/proc"
  exec setpriv --no-new-privs chroot --userspec="$user" "$image" "$@"
`

/** Starts a program in the image, in the process that it returns. */
const start = (image, { env, user }, more, command) => {
  const variables = Object.entries({ ...env, ...more }).map(([name, value]) => `${name}=${value}`)
  const isolated = ["unshare", "--mount", "sh", "-ec", script, "sh", image, user]
  const [first, ...rest] = [...sudo, "env", ...variables, ...isolated, ...command]
  const { PATH } = process.env
  return spawn(first, rest, { env: { PATH }, stdio: ["ignore", "pipe", "inherit"] })
}

const codeOf = async (child) => {
  const [code] = await once(child, "exit")
  return code
}

const demand = (holds, message) => {
  if (!holds) throw new Error(message)
}

/** Waits for a line of the output. */
const untilLine = async (child, pattern) => {
  for await (const line of createInterface(child.stdout)) if (pattern.test(line)) return
  throw new Error(`the server ended before it printed ${pattern}`)
}

/** Migrates, starts the server, extends a membership, and stops the server. */
const tryImage = async (image, config, url) => {
  const node = "/nodejs/bin/node"
  const run = (variables, ...command) => start(image, config, variables, command)
  const seed = {
    projects: [
      {
        id: "p1",
        memberships: [{ user_id: "1001", end_date: "2027-01-01T00:00:00.000Z" }],
        api_keys: ["a-token"],
      },
    ],
  }
  mkdirSync(join(image, "run/secrets"), { recursive: true })
  writeFileSync(join(image, "run/secrets/seed"), JSON.stringify(seed))
  const DATABASE_URL = url
  const migrated = await codeOf(run({ DATABASE_URL }, node, "/tenure/migrate.mjs"))
  demand(migrated === 0, "it does not migrate")

  const PORT = String(await freePort())
  const more = { DATABASE_URL, DATABASE_MIGRATE: "false", SEED_FILE: "/run/secrets/seed", PORT }
  const probe = () => codeOf(run(more, ...config.health))
  demand((await probe()) === 1, "the health check finds a server before there is one")
  const server = run({ ...more, DRAIN_DELAY: "0" }, node, ...config.command)
  try {
    await untilLine(server, /Tenure listens on/)
    demand((await probe()) === 0, "the health check does not find the server")
    const path = "/v2/projects/p1/memberships/1001/extend"
    const { status } = await fetch(`http://127.0.0.1:${PORT}${path}`, {
      method: "PATCH",
      headers: { authorization: "Bearer a-token", "content-type": "application/json" },
      body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
    })
    demand(status === 200, `an extension is answered ${status}`)
    const [user] = /(?<=^Uid:\s)\d+/m.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))
    demand(config.user.startsWith(`${user}:`), `it runs as the user ${user}`)
  } finally {
    server.kill()
  }
  demand((await codeOf(server)) === 0, "it does not stop with exit code 0")
}

const bytesIn = (path) => {
  const found = statSync(path)
  if (!found.isDirectory()) return found.size
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
}

const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`

const folder = mkdtempSync(join(tmpdir(), "image-"))
const [built, image] = [join(folder, "built"), join(folder, "image")]
const postgres = await startPostgres()
try {
  chmodSync(folder, 0o755)
  const [first, last] = stagesOf(readFileSync(join(root, dockerfile), "utf8"))
  build(first, built)
  const config = assemble(last, built, image)
  demand(existsSync(join(image, "tenure/NOTICES.txt")), "the licences of others are missing")
  const own = bytesIn(image)
  addBase(image)
  process.stdout.write(`${megabytes(own)}, with Node ${megabytes(bytesIn(image))}\n`)
  mkdirSync(join(image, "proc"))
  await tryImage(image, config, postgres.url)
} finally {
  await postgres.stop()
  rmSync(folder, { recursive: true })
}
