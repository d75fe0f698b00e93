/** The file with which a program starts to use Tenure, and what its author does next. */

import { dependsOn, find, type Host, type Manifest } from "./Host.ts"

/** What `tenure init` finds in the folder of a program. */
export interface Program {
  readonly manifest: Manifest
  /** Whether a file or folder exists, by its path in the folder. */
  readonly has: (path: string) => boolean
}

/** What `tenure init` does. */
export interface Start {
  readonly host: Host
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
const extensionOf = ({ has, manifest }: Program): string => {
  const language = has("tsconfig.json") || dependsOn(manifest, "typescript") ? "ts" : "js"
  return manifest.type === "module" ? language : `m${language}`
}

const pathOf = (host: Host, program: Program): string => {
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

const startOf = (host: Host, path: string): ReadonlyArray<string> => {
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
export const decide = (program: Program): Start => {
  const host = find(program.manifest)
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
