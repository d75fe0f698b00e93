/** `tenure init`: writes a file to start with, from the template for the program's host. */

import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { booleanFlag } from "../support/flags.ts"
import { type AgentsOutcome, writeAgentsGuide } from "./init-agents.ts"

/** The used fields in the program's package.json. */
interface Manifest {
  readonly type?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** A host. */
interface HostProject {
  /** The template's name. */
  readonly name: string
  readonly title: string
  /** A dependency on this package identifies the host. */
  readonly sign?: string
  /** The template's imports besides `tenure` and `sign`. */
  readonly needs?: ReadonlyArray<string>
}

// Nest and Next run on other hosts in this list, so they come first.
const hosts: ReadonlyArray<HostProject> = [
  { name: "nest", title: "Nest", sign: "@nestjs/core", needs: ["@nestjs/platform-express"] },
  { name: "next", title: "Next.js", sign: "next" },
  { name: "fastify", title: "Fastify", sign: "fastify" },
  { name: "hono", title: "Hono", sign: "hono", needs: ["@hono/node-server"] },
  { name: "express", title: "Express", sign: "express" },
]

const plain: HostProject = { name: "plain", title: "node:http" }

/** Whether a program depends on a package. */
const dependsOn = ({ dependencies = {}, devDependencies = {} }: Manifest, name: string): boolean =>
  name in dependencies || name in devDependencies

/** Finds a program's host. Default: `node:http`. */
const findHost = (manifest: Manifest): HostProject =>
  hosts.find(({ sign }) => sign !== undefined && dependsOn(manifest, sign)) ?? plain

/** A program's folder, as far as the decision needs it. */
interface StarterProgram {
  readonly manifest: Manifest
  /** Whether a file or folder exists, by its path in the folder. */
  readonly has: (path: string) => boolean
}

/** A file to write and the steps after it. */
export interface StarterFiles {
  readonly host: HostProject
  /** The file's path. */
  readonly path: string
  /** Fills in the host's template. */
  readonly fill: (template: string) => string
  /** The author's next steps, one per line. */
  readonly steps: ReadonlyArray<string>
}

// All templates listen there, and so does Next.js.
const port = "on port 3000, or that in PORT"

const extend =
  "curl -X PATCH http://127.0.0.1:3000/v2/projects/p1/memberships/1001/extend " +
  `-H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" ` +
  `-d '{"extend":"2099-01-01T00:00:00.000Z"}'`

/** Returns the file extension: top-level `await` needs an ES module. */
const extensionOf = ({ has, manifest }: StarterProgram): string => {
  const language = has("tsconfig.json") || dependsOn(manifest, "typescript") ? "ts" : "js"
  return manifest.type === "module" ? language : `m${language}`
}

const pathOf = (host: HostProject, program: StarterProgram): string => {
  const extension = extensionOf(program)
  switch (host.name) {
    case "next": {
      // Next.js accepts no other names for routes.
      const app = program.has("src/app") ? "src/app" : "app"
      return `${app}/v2/[...path]/route.${extension.replace("m", "")}`
    }
    case "nest":
      return `src/tenure.${extension}`
    default:
      return `tenure.${extension}`
  }
}

const startOf = (host: HostProject, path: string): ReadonlyArray<string> => {
  switch (host.name) {
    case "next":
      return [`npx next dev    # ${port}; prints a token at the first request: open /v2/docs`]
    case "nest":
      return [
        "npx nest build",
        `node ${path.replace("src/", "dist/").replace("ts", "js")}    # ${port}; prints a token`,
      ]
    default:
      return [`node ${path}    # ${port}; prints a token`]
  }
}

/** Removes declarations and parameter types, the only types in templates: the rest is JavaScript. */
const withoutTypes = (template: string): string =>
  template.replace(/^declare .*?^}\n\n/ms, "").replaceAll(/: [A-Z]\w+(?=\))/g, "")

const isJavaScript = (path: string): boolean => path.endsWith("js")

/** Decides on the file and the steps. */
const chooseStarter = (program: StarterProgram): StarterFiles => {
  const host = findHost(program.manifest)
  const path = pathOf(host, program)
  const missing = ["tenure", ...(host.needs ?? [])].filter(
    (name) => !dependsOn(program.manifest, name),
  )
  return {
    host,
    path,
    fill: isJavaScript(path) ? withoutTypes : (template) => template,
    steps: [
      ...(missing.length === 0 ? [] : [`npm install ${missing.join(" ")}`]),
      ...startOf(host, path),
      extend,
    ],
  }
}

/** Paths that affect the decision by their existence. */
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
const write = Effect.fnUntraced(function* ({ fill, host, path }: StarterFiles) {
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
      // A partial file would stop the next run from writing it.
      Effect.onError(file.writeAll(new TextEncoder().encode(content)), () =>
        Effect.ignore(files.remove(path)),
      ),
    ),
    Effect.scoped,
    Effect.uninterruptible,
  )
})

const instructions = ({ host, path, steps }: StarterFiles): string =>
  [
    `Wrote ${path}, which serves Tenure with ${host.title}.`,
    "",
    "Next:",
    ...steps.map((step) => `  ${step}`),
    "",
    "Then move its lines to your server. memory() forgets everything when the process ends:",
    "tenure/postgres and tenure/embedded keep it.",
  ].join("\n")

const agentsFlag = booleanFlag(
  "agents",
  "Writes no server, but a section for coding agents in AGENTS.md; again, it brings that up to date",
)

const agentsSentence: Readonly<Record<AgentsOutcome, string>> = {
  written: "Wrote the section about Tenure in AGENTS.md.",
  unchanged: "The section about Tenure in AGENTS.md is up to date.",
}

/** The command. */
export const initCommand = Command.make(
  "init",
  { agents: agentsFlag },
  Effect.fnUntraced(function* ({ agents }) {
    if (agents) return yield* Console.log(agentsSentence[yield* writeAgentsGuide])
    const start = chooseStarter(yield* readProgram)
    yield* write(start)
    yield* Console.log(instructions(start))
  }),
).pipe(
  Command.withDescription(
    "Writes a server with Tenure for the host in package.json: Express, Fastify, Hono, Next.js, Nest or node:http",
  ),
  Command.withExamples([
    { command: "tenure init" },
    { command: "tenure init --agents", description: "Tells coding agents how to use Tenure" },
  ]),
)
