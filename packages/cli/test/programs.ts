/** The command as a process, and folders with programs, in which it runs and writes others. */

import { execFile, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { PgClient, layer } from "@effect/sql-pg/PgClient"
import { freePort } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, inject, onTestFinished } from "vitest"
import { type Ended, type Environment, tenureWith } from "./in-process.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly commandFile: string
    readonly databaseUrl: string
  }
}

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** The environment for a process that knows nothing about where Tenure is. */
export const bareEnvironment = {
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
}

/** Runs a program to its end. */
export const run = (
  words: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly env?: object } = {},
): Promise<Ended> => {
  const [program = "", ...args] = words
  const env = { ...bareEnvironment, ...options.env }
  return promisify(execFile)(program, args, { ...options, env }).then(
    (printed) => ({ code: 0, ...printed }),
    ({ code, stderr, stdout }) => ({ code, stderr, stdout }),
  )
}

/** The command, as words. */
export const command = (...rest: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  inject("commandFile"),
  ...rest,
]

/** A program from its sources, as words. */
const fromSource = (file: string) => [process.execPath, "-C", "@tenure/source", file]

/** The command from its sources, as words. */
export const commandFromSource = (...rest: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...fromSource(pathOf("../../tenure/src/bin/tenure.ts")),
  ...rest,
]

/** The command for a shell. */
export const binary = command().join(" ")

/** Runs a line in a shell that has the command as `tenure`. */
export const shell = (line: string, env: Environment, cwd = process.cwd()): Promise<Ended> =>
  run(["/bin/sh", "-ec", line.replaceAll(/\b(npx )?tenure /g, `${binary} `)], { cwd, env })

/** Starts the command as a process until the test ends. */
export const startCommand = (env: Environment, ...args: ReadonlyArray<string>) => {
  const [node = "", ...rest] = command(...args)
  const child = spawn(node, rest, { env: { ...bareEnvironment, ...env }, stdio: "pipe" })
  onTestFinished(() => void child.kill("SIGKILL"))
  const printed = { stdout: "", stderr: "" }
  child.stdout.on("data", (chunk) => (printed.stdout += String(chunk)))
  child.stderr.on("data", (chunk) => (printed.stderr += String(chunk)))
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code) => resolve({ code: code ?? -1, ...printed }))
  })
  return { child, printed, ended }
}

/** Makes a folder with files, in which these tests' packages can be imported. */
export const folderWith = (files: Readonly<Record<string, string | object>>): string => {
  const parent = pathOf("../.programs")
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, "program-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  }
  return folder
}

/** Has `init` write something in a folder. */
export const initIn = async (folder: string, ...flags: ReadonlyArray<string>): Promise<Ended> => {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await tenureWith({}).run`init ${flags}`
  } finally {
    process.chdir(before)
  }
}

/** Has `init` write a server in a folder, and returns what it says. */
export const writeServer = async (folder: string): Promise<string> => {
  const { code, stderr, stdout } = await initIn(folder)
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  return stdout
}

/** Starts a server until the test ends, and returns its URL and the token that it prints. */
export const start = async (folder: string, file: string) => {
  const port = await freePort()
  const [node = "", ...rest] = fromSource(file)
  const server = spawn(node, rest, {
    cwd: folder,
    env: { ...bareEnvironment, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  })
  onTestFinished(() => void server.kill())
  const token = await new Promise<string>((resolve, reject) => {
    server.once("exit", (code) => reject(new Error(`exit code ${code}`)))
    createInterface(server.stdout).on("line", (line) => {
      const [, found] = /Bearer (tnr_[\w-]+)/.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  return { url: `http://127.0.0.1:${port}`, token }
}

/** A request that extends the membership which every program grants. */
export const extend = (url: string, token: string): Request =>
  new Request(`${url}/v2/projects/p1/memberships/1001/extend`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ extend: "2099-01-01T00:00:00.000Z" }),
  })

/** Runs statements on their own connection. */
export const runOn = (url: string, ...statements: ReadonlyArray<string>) =>
  PgClient.use((sql) =>
    Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true }),
  ).pipe(Effect.provide(layer({ url: Redacted.make(url), maxConnections: 1 })), Effect.runPromise)
