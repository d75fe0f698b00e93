/** Folders with programs, in which the command runs, and the programs that it writes. */

import { execFile, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { freePort } from "@tenure/testing/conformance"
import { expect, inject, onTestFinished } from "vitest"
import { type Ended, tenureWith } from "./in-process.ts"

declare module "vitest" {
  interface ProvidedContext {
    readonly commandFile: string
    readonly databaseUrl: string
    readonly serverFile: string
  }
}

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

const node = (file: string, ...rest: ReadonlyArray<string>) => [
  "-C",
  "@tenure/source",
  file,
  ...rest,
]

/** Makes a folder with files, in which the packages of these tests can be imported. */
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

/** The environment of a process that knows nothing of where Tenure is. */
export const bareEnvironment = {
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
}

/** Runs a program to its end. */
export const run = (folder: string, ...words: ReadonlyArray<string>): Promise<Ended> =>
  promisify(execFile)(process.execPath, words, { cwd: folder }).then(
    (printed) => ({ code: 0, ...printed }),
    ({ code, stderr, stdout }) => ({ code, stderr, stdout }),
  )

/** The command with arguments, as words. */
export const command = (...rest: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  inject("commandFile"),
  ...rest,
]

/** The command from its sources, as words. */
export const commandFromSource = (...rest: ReadonlyArray<string>): ReadonlyArray<string> => [
  process.execPath,
  ...node(pathOf("../../tenure/src/bin/tenure.ts"), ...rest),
]

/** The command for a shell. */
export const binary = command().join(" ")

/** Runs the command in this process, in a folder. */
export const tenureIn = async (folder: string, ...args: ReadonlyArray<string>): Promise<Ended> => {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await tenureWith({})(...args)
  } finally {
    process.chdir(before)
  }
}

/** Has `init` write a server in a folder, and returns what it says. */
export const writeServer = async (folder: string): Promise<string> => {
  const { code, stderr, stdout } = await tenureIn(folder, "init")
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  return stdout
}

/** Starts a server until the end of the test, and returns its URL and the token that it prints. */
export const start = async (folder: string, file: string) => {
  const port = await freePort()
  const server = spawn(process.execPath, node(file), {
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
