/** Prometheus: the installed one, or else the one in a package for Debian or Ubuntu. */

import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "@tenure/testing/conformance"
import { stringify } from "yaml"
import { findTool, run } from "./tools.ts"

// The folder with its programs, or with the unpacked package.
const tool = await findTool({
  name: "prometheus",
  installed: async () =>
    (process.env["PATH"] ?? "")
      .split(":")
      .find((path) => ["promtool", "prometheus"].every((name) => existsSync(join(path, name)))),
  // Without installing it: that would start a service.
  unpack: async (cwd) => {
    const download = () =>
      run("apt-get", ["download", "--quiet", "prometheus"], { cwd, timeout: 120_000 })
    await download().catch(async () => {
      // The lists of packages may be old, or missing.
      await run("apt-get", ["update", "--quiet"], { timeout: 120_000 })
      await download()
    })
    for (const file of await readdir(cwd)) {
      if (file.endsWith(".deb")) await run("dpkg-deb", ["--extract", join(cwd, file), cwd])
    }
    return cwd
  },
  check: (path) => run(join(path, "usr/bin/promtool"), ["--version"]),
})

export const { missing } = tool

const program = (name: "prometheus" | "promtool"): string => {
  const unpacked = join(tool.path(), "usr/bin", name)
  return existsSync(unpacked) ? unpacked : join(tool.path(), name)
}

/** Runs promtool, and returns its output. Rejects with the output if a check fails. */
export const promtool = async (...parameters: ReadonlyArray<string>): Promise<string> =>
  (await run(program("promtool"), parameters)).stdout

/** Starts Prometheus, which scrapes a target and evaluates rules every second. */
export const startPrometheus = async (target: string, rules: string) => {
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
    /** Asks its API, and returns the data. */
    ask: async (path: string): Promise<ReturnType<JSON["parse"]>> => {
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
