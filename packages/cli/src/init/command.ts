/** `tenure init`: writes the file with which a program starts to use Tenure. */

import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { Manifest } from "./Host.ts"
import { decide, type Start } from "./Start.ts"

/** What exists in the folder of a program, of what the decision asks for. */
const asked = ["tsconfig.json", "src/app"]

const refuse = (message: string) => new CliError.UserError({ cause: message, userMessage: message })

const readManifest = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  if (!(yield* files.exists("package.json"))) return {}
  const text = yield* files.readFileString("package.json")
  return yield* Effect.try({
    try: (): Manifest => JSON.parse(text),
    catch: () => refuse("package.json is not valid JSON."),
  })
})

const readProgram = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const found = yield* Effect.filter(asked, (path) => files.exists(path))
  return { manifest: yield* readManifest, has: (path: string) => found.includes(path) }
})

/** Writes the file; fails if there is one. */
const write = Effect.fnUntraced(function* ({ fill, host, path }: Start) {
  const files = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const template = new URL(`../../templates/${host.name}.ts`, import.meta.url)
  const content = fill(yield* files.readFileString(yield* paths.fromFileUrl(template)))
  yield* files.makeDirectory(paths.dirname(path), { recursive: true })
  yield* files.open(path, { flag: "wx" }).pipe(
    Effect.catchIf(
      ({ reason }) => reason._tag === "AlreadyExists",
      () => refuse(`${path} exists, and stays as it is.`),
    ),
    Effect.flatMap((file) =>
      // A part of it would keep the next run from writing it.
      Effect.onError(file.writeAll(new TextEncoder().encode(content)), () =>
        Effect.ignore(files.remove(path)),
      ),
    ),
    Effect.scoped,
    Effect.uninterruptible,
  )
})

const instructions = ({ host, path, steps }: Start): string =>
  [
    `Wrote ${path}, which serves Tenure with ${host.title}.`,
    "",
    "Next:",
    ...steps.map((step) => `  ${step}`),
    "",
    "Then move its lines to your server. memory() forgets everything when the process ends:",
    "tenure/postgres and tenure/embedded keep it.",
  ].join("\n")

/** The command. */
export const init = Command.make(
  "init",
  {},
  Effect.fnUntraced(function* () {
    const start = decide(yield* readProgram)
    yield* write(start)
    yield* Console.log(instructions(start))
  }),
).pipe(
  Command.withDescription(
    "Writes a server with Tenure for the host in package.json: Express, Fastify, Hono, Next.js, Nest or node:http",
  ),
  Command.withExamples([{ command: "tenure init" }]),
)
