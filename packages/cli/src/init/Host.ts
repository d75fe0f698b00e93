/** The hosts that `tenure init` knows, and which of them a program uses. */

/** What is read of the program's package.json. */
export interface Manifest {
  readonly type?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** A host. */
export interface Host {
  /** The name of its template. */
  readonly name: string
  readonly title: string
  /** The package whose presence shows that the program uses the host. */
  readonly sign?: string
  /** The packages that the template imports, besides `tenure` and the sign. */
  readonly needs?: ReadonlyArray<string>
}

// Nest and Next run on others of these, so they come first.
const hosts: ReadonlyArray<Host> = [
  { name: "nest", title: "Nest", sign: "@nestjs/core", needs: ["@nestjs/platform-express"] },
  { name: "next", title: "Next.js", sign: "next" },
  { name: "fastify", title: "Fastify", sign: "fastify" },
  { name: "hono", title: "Hono", sign: "hono", needs: ["@hono/node-server"] },
  { name: "express", title: "Express", sign: "express" },
]

const plain: Host = { name: "plain", title: "node:http" }

/** Whether a program depends on a package. */
export const dependsOn = (
  { dependencies = {}, devDependencies = {} }: Manifest,
  name: string,
): boolean => name in dependencies || name in devDependencies

/** Finds the host of a program: `node:http` if it has none of the others. */
export const find = (manifest: Manifest): Host =>
  hosts.find(({ sign }) => sign !== undefined && dependsOn(manifest, sign)) ?? plain
