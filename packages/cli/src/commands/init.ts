/** The hosts that `tenure init` knows, and which of them a program uses. */

import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"

/** What is read of the program's package.json. */
interface Manifest {
  readonly type?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** A host. */
interface HostProject {
  /** The name of its template. */
  readonly name: string
  readonly title: string
  /** The package whose presence shows that the program uses the host. */
  readonly sign?: string
  /** The packages that the template imports, besides `tenure` and the sign. */
  readonly needs?: ReadonlyArray<string>
}

// Nest and Next run on others of these, so they come first.
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

/** Finds the host of a program: `node:http` if it has none of the others. */
const findHost = (manifest: Manifest): HostProject =>
  hosts.find(({ sign }) => sign !== undefined && dependsOn(manifest, sign)) ?? plain

/** The file with which a program starts to use Tenure, and what its author does next. */

/** What `tenure init` finds in the folder of a program. */
interface StarterProgram {
  readonly manifest: Manifest
  /** Whether a file or folder exists, by its path in the folder. */
  readonly has: (path: string) => boolean
}

/** What `tenure init` does. */
export interface StarterFiles {
  readonly host: HostProject
  /** The path of the file to write. */
  readonly path: string
  /** Makes the content of the file from the template of the host. */
  readonly fill: (template: string) => string
  /** What the author does next, a line each. */
  readonly steps: ReadonlyArray<string>
}

// All templates listen there, and so does Next.js.
const port = "on port 3000, or that in PORT"

const extend =
  "curl -X PATCH http://127.0.0.1:3000/v2/projects/p1/memberships/1001/extend " +
  `-H "Authorization: Bearer TOKEN" -H "Content-Type: application/json" ` +
  `-d '{"extend":"2099-01-01T00:00:00.000Z"}'`

/** The end of the file's name. A file that is a module in any package awaits at its top level. */
const extensionOf = ({ has, manifest }: StarterProgram): string => {
  const language = has("tsconfig.json") || dependsOn(manifest, "typescript") ? "ts" : "js"
  return manifest.type === "module" ? language : `m${language}`
}

const pathOf = (host: HostProject, program: StarterProgram): string => {
  const extension = extensionOf(program)
  switch (host.name) {
    case "next": {
      // Next.js knows no other names of routes.
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

/** Without declarations and the types of parameters, the only types in templates, a template is JavaScript. */
const withoutTypes = (template: string): string =>
  template.replace(/^declare .*?^}\n\n/ms, "").replaceAll(/: [A-Z]\w+(?=\))/g, "")

const isJavaScript = (path: string): boolean => path.endsWith("js")

/** Decides what to write for a program. */
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

/** `tenure init`: writes the file with which a program starts to use Tenure. */

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
      // A part of it would keep the next run from writing it.
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

/** The command. */
export const initCommand = Command.make(
  "init",
  {},
  Effect.fnUntraced(function* () {
    const start = chooseStarter(yield* readProgram)
    yield* write(start)
    yield* Console.log(instructions(start))
  }),
).pipe(
  Command.withDescription(
    "Writes a server with Tenure for the host in package.json: Express, Fastify, Hono, Next.js, Nest or node:http",
  ),
  Command.withExamples([{ command: "tenure init" }]),
)
