/** Prometheus, if it is installed or can be had from the packages of Debian or Ubuntu. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { freePort } from "@tenure/testing/conformance"
import { stringify } from "yaml"

const run = promisify(execFile)

// Kept for the next run.
const unpacked = join(tmpdir(), "tenure-prometheus")

/** Unpacks the package, without installing it: that would start a service. */
const unpack = async (): Promise<void> => {
  const cwd = await mkdtemp(`${unpacked}-`)
  const download = () =>
    run("apt-get", ["download", "--quiet", "prometheus"], { cwd, timeout: 120_000 })
  try {
    await download().catch(async () => {
      // The lists of packages may be old, or missing.
      await run("apt-get", ["update", "--quiet"], { timeout: 120_000 })
      await download()
    })
    for (const file of await readdir(cwd)) {
      if (file.endsWith(".deb")) await run("dpkg-deb", ["--extract", join(cwd, file), cwd])
    }
    // At once, so that an interruption leaves nothing half done. Another process may have been quicker.
    await rename(cwd, unpacked).catch((error: unknown) => {
      if (!existsSync(unpacked)) throw error
    })
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

/** Returns the folder of the programs, or why there is none. */
const find = async (): Promise<{ readonly folder: string } | { readonly reason: string }> => {
  const installed = (process.env["PATH"] ?? "")
    .split(":")
    .find((path) => existsSync(join(path, "promtool")) && existsSync(join(path, "prometheus")))
  if (installed !== undefined) return { folder: installed }
  try {
    if (!existsSync(unpacked)) await unpack()
    const folder = join(unpacked, "usr/bin")
    await run(join(folder, "promtool"), ["--version"])
    return { folder }
  } catch (error) {
    return { reason: String(error).split("\n")[0] ?? "" }
  }
}

const found = await find()

/** Why there is no Prometheus here, if there is none. Where everything is checked, its tests then fail. */
export const missing =
  "reason" in found && process.env["CI"] === undefined ? found.reason : undefined

const program = (name: "prometheus" | "promtool"): string => {
  if ("reason" in found) throw new Error(`there is no Prometheus: ${found.reason}`)
  return join(found.folder, name)
}

/** Runs promtool, and returns its output. It rejects with that output if something does not hold. */
export const promtool = async (...parameters: ReadonlyArray<string>): Promise<string> =>
  (await run(program("promtool"), parameters)).stdout

/** A running Prometheus. */
export interface Prometheus {
  /** Returns the data of a response of its API. */
  readonly ask: (path: string) => Promise<ReturnType<JSON["parse"]>>
  readonly stop: () => Promise<void>
}

/** Starts Prometheus, which scrapes a target every second, and evaluates rules as often. */
export const startPrometheus = async (target: string, rules: string): Promise<Prometheus> => {
  const folder = await mkdtemp(join(tmpdir(), "tenure-prometheus-server-"))
  await writeFile(join(folder, "rules.yaml"), rules)
  const configuration = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: ["rules.yaml"],
    scrape_configs: [{ job_name: "tenure", static_configs: [{ targets: [target] }] }],
  }
  await writeFile(join(folder, "prometheus.yaml"), stringify(configuration))
  const address = `127.0.0.1:${await freePort()}`
  const options = [
    `--config.file=${join(folder, "prometheus.yaml")}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=${address}`,
    "--log.level=error",
  ]
  const child = spawn(program("prometheus"), options, {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  })
  const ended = once(child, "exit")
  const ready = (): Promise<boolean> =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await ready())) {
    if (child.exitCode !== null) throw new Error("Prometheus does not start")
  }
  return {
    ask: async (path) => {
      const { data, error, status } = Object(await (await fetch(`http://${address}${path}`)).json())
      if (status !== "success") throw new Error(`${path}: ${error}`)
      return data
    },
    stop: async () => {
      child.kill()
      await ended
      await rm(folder, { recursive: true })
    },
  }
}
