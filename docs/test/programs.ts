/** Examples as programs, and what they need. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import { PgClient } from "@effect/sql-pg"
import { accepts } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

declare module "vitest" {
  interface ProvidedContext {
    readonly databaseUrl: string
  }
}

const argumentsOf = (file: string) => ["-C", "@tenure/source", file]

/** A program's variables, and those that every program gets. */
export const environment = (variables: Readonly<Record<string, string>>) => ({
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
  ...variables,
})

/**
 * Starts a server on a port, and waits until it prints a token.
 *
 * @param printed - matches the line with the token, and has the token as its first group
 */
export const start = async (
  file: string,
  port: number,
  printed = /Bearer (tnr_[\w-]+)/,
): Promise<{ readonly token: string; readonly stop: () => void }> => {
  const program = spawn(process.execPath, argumentsOf(file), {
    env: environment({ PORT: String(port), DATABASE_URL: "memory:" }),
    stdio: ["ignore", "pipe", "inherit"],
  })
  const token = await new Promise<string>((resolve, reject) => {
    program.once("exit", (code) => reject(new Error(`exit code ${code}`)))
    createInterface(program.stdout).on("line", (line) => {
      const [, found] = printed.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  return { token, stop: () => void program.kill() }
}

/**
 * Starts a server on a port, and waits until it listens.
 *
 * @param command - what runs the file, and its arguments
 */
export const listen = async (
  file: string,
  port: number,
  variables: Readonly<Record<string, string>> = {},
  command: ReadonlyArray<string> = [process.execPath, ...argumentsOf(file)],
): Promise<{ readonly stop: () => void }> => {
  const [program = "", ...args] = command
  const child = spawn(program, args, {
    env: environment({ PORT: String(port), ...variables }),
    stdio: ["ignore", "ignore", "inherit"],
  })
  const ended = once(child, "exit").then(([code]) => `exit code ${code}`)
  while (!(await accepts(port))) {
    const exit = await Promise.race([ended, setTimeout(50)])
    if (exit !== undefined) throw new Error(exit)
  }
  return { stop: () => void child.kill() }
}

/** Runs a program to its end, and returns what it prints. Rejects if it fails. */
export const run = async (
  file: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<string> => {
  const options = { env: environment(variables) }
  const { stdout } = await promisify(execFile)(process.execPath, argumentsOf(file), options)
  return stdout
}

/** Creates an empty database on the tests' server, and returns its URL. */
export const freshDatabase = async (serverUrl: string, name: string): Promise<string> => {
  const create = Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    yield* sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    yield* sql.unsafe(`CREATE DATABASE ${name}`)
  })
  const client = PgClient.layer({ url: Redacted.make(serverUrl) })
  await Effect.runPromise(Effect.provide(create, client))
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
