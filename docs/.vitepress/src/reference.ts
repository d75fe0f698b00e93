/** Makes the API reference pages from all packages' doc comments, with TypeDoc. */

import { globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import {
  Application,
  type Context,
  Converter,
  type DeclarationReflection,
  ReferenceType,
  ReflectionKind,
  ReflectionType,
} from "typedoc"
import type { PluginOptions } from "typedoc-plugin-markdown"
import { repository, root, site } from "./repository.ts"

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly exports?: Readonly<Record<string, { readonly "@tenure/source"?: string } | null>>
}

/** A public module. */
interface Module {
  readonly name: string
  readonly file: string
}

const packages = join(root, "packages")

// It re-exports the others.
const all = "tenure"

/** Returns a package's public modules, without programs and modules for this repository. */
const modulesOf = (path: string): ReadonlyArray<Module> => {
  const folder = join(packages, dirname(path))
  const manifest: Manifest = JSON.parse(readFileSync(join(packages, path), "utf8"))
  if (manifest.private === true || manifest.name === all) return []
  return Object.entries(manifest.exports ?? {}).flatMap(([name, target]) => {
    const source = target?.["@tenure/source"]
    return source === undefined || name.startsWith("./internal") || name.startsWith("./bin/")
      ? []
      : [{ name: join(manifest.name, name), file: join(folder, source) }]
  })
}

/** Names modules as users import them. */
const rename = ({ project }: Context, modules: ReadonlyArray<Module>): void => {
  const names = new Map(modules.map(({ file, name }) => [file, name]))
  for (const child of project.children ?? []) {
    const [source] = child.sources ?? []
    child.name = names.get(source?.fullFileName ?? "") ?? child.name
  }
}

/** Returns a service's members, which are a type argument to its base class. */
const shapeOf = ({ extendedTypes = [] }: DeclarationReflection) =>
  extendedTypes
    .flatMap((type) => (type instanceof ReferenceType ? (type.typeArguments ?? []) : []))
    .flatMap((type) => (type instanceof ReflectionType ? (type.declaration.children ?? []) : []))

/** Shows the members in services and errors, and hides Effect's base classes. */
const simplify = ({ project }: Context): void => {
  for (const found of project.getReflectionsByKind(ReflectionKind.Class)) {
    if (!found.isDeclaration()) continue
    for (const member of found.getChildrenByKind(ReflectionKind.Constructor)) {
      if (member.inheritedFrom !== undefined) project.removeReflection(member)
    }
    for (const member of shapeOf(found)) {
      member.parent = found
      found.addChild(member)
    }
    for (const member of found.children ?? []) {
      delete member.inheritedFrom
      delete member.overwrites
      for (const signature of member.signatures ?? []) delete signature.inheritedFrom
      if (member.getSignature !== undefined) delete member.getSignature.overwrites
    }
    delete found.extendedTypes
  }
}

const options: PluginOptions = {
  entryFileName: "index",
  excludeScopesInPaths: true,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: false,
  classPropertiesFormat: "table",
  // Heading ids alone do not distinguish the type AttemptResult from the property Attempt.result.
  useHTMLAnchors: true,
  parametersFormat: "table",
  interfacePropertiesFormat: "table",
  typeAliasPropertiesFormat: "table",
  sanitizeComments: true,
}

/** Writes the pages into a folder, and returns the module names. */
export const write = async (folder: string): Promise<ReadonlyArray<string>> => {
  const modules = globSync("*/package.json", { cwd: packages }).toSorted().flatMap(modulesOf)
  const application = await Application.bootstrapWithPlugins({
    ...options,
    plugin: ["typedoc-plugin-markdown"],
    entryPoints: modules.map(({ file }) => file),
    tsconfig: join(site, "tsconfig.reference.json"),
    router: "module",
    outputs: [{ name: "markdown", path: folder }],
    name: "Reference",
    readme: "none",
    disableGit: true,
    sourceLinkTemplate: `${repository}/blob/main/packages/{path}#L{line}`,
    basePath: root,
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    skipErrorChecking: true,
    validation: false,
    logLevel: "Error",
  })
  application.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    rename(context, modules)
    simplify(context)
  })
  const project = await application.convert()
  if (project === undefined) throw new Error("TypeDoc has failed")
  await application.generateOutputs(project)
  return modules.map(({ name }) => name)
}
