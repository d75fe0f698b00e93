/** Finds declarations in modules, across imports, and the doc comments above them. */

import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import {
  type Comment,
  type Expression,
  type ObjectExpression,
  type ObjectProperty,
  type Program,
  type TSInterfaceDeclaration,
  type TSTypeAliasDeclaration,
  parseSync,
} from "oxc-parser"

/** A parsed module. */
export interface Source {
  readonly path: string
  readonly text: string
  readonly program: Program
  readonly comments: ReadonlyArray<Comment>
}

const sources = new Map<string, Source>()

/** Parses a module, once. */
export const sourceOf = (path: string): Source => {
  const known = sources.get(path)
  if (known !== undefined) return known
  const text = readFileSync(path, "utf8")
  const { comments, errors, program } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`)
  const source = { path, text, program, comments }
  sources.set(path, source)
  return source
}

/** A doc comment: its paragraphs, and its tags. */
export interface Doc {
  readonly paragraphs: ReadonlyArray<string>
  readonly tags: ReadonlyMap<string, string>
}

/** No doc comment. */
export const noDoc: Doc = { paragraphs: [], tags: new Map() }

const parseDoc = (text: string): Doc => {
  const [words = "", ...tags] = text
    .replaceAll(/^\s*\*[ \t]?/gm, "")
    .trim()
    .split(/^@/m)
  return {
    paragraphs: words
      .split(/\n\s*\n/)
      .map((paragraph) => paragraph.trim().replaceAll(/\s+/g, " "))
      .filter((paragraph) => paragraph !== ""),
    tags: new Map(
      tags.map((tag) => {
        const [name = "", ...value] = tag.trim().split(/\s+/)
        return [name, value.join(" ")]
      }),
    ),
  }
}

/** Returns the doc comment directly above a declaration. */
export const docAt = ({ comments, text }: Source, start: number): Doc => {
  const comment = comments.findLast(
    ({ end, type, value }) =>
      end <= start &&
      type === "Block" &&
      value.startsWith("*") &&
      text.slice(end, start).trim() === "",
  )
  return comment === undefined ? noDoc : parseDoc(comment.value)
}

/** Something with a name, and the module that declares it. */
export interface Found<Node> {
  readonly source: Source
  readonly node: Node
  /** The statement's start offset. */
  readonly start: number
}

type TypeDeclaration = TSInterfaceDeclaration | TSTypeAliasDeclaration

/** Returns the module and the exported name behind an imported name. */
const importOf = (source: Source, name: string) => {
  for (const node of source.program.body) {
    if (node.type !== "ImportDeclaration") continue
    for (const specifier of node.specifiers) {
      if (specifier.type !== "ImportSpecifier" || specifier.local.name !== name) continue
      const imported = specifier.imported
      return {
        source: sourceOf(join(dirname(source.path), node.source.value)),
        name: imported.type === "Literal" ? imported.value : imported.name,
      }
    }
  }
  return undefined
}

/** Returns a module's statements without `export`. */
const statements = ({ program }: Source) =>
  program.body.map((node) => ({
    start: node.start,
    node:
      node.type === "ExportNamedDeclaration" && node.declaration !== null ? node.declaration : node,
  }))

/** Finds an interface or a type alias by its name in a module. */
export const findType = (source: Source, name: string): Found<TypeDeclaration> => {
  for (const { node, start } of statements(source)) {
    if (
      (node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration") &&
      node.id.name === name
    ) {
      return { source, node, start }
    }
  }
  const imported = importOf(source, name)
  if (imported === undefined) throw new Error(`${source.path} has no type ${name}`)
  return findType(imported.source, imported.name)
}

/** Finds a constant's value by its name in a module. */
export const findValue = (source: Source, name: string): Found<Expression> => {
  for (const { node, start } of statements(source)) {
    if (node.type !== "VariableDeclaration") continue
    for (const { id, init } of node.declarations) {
      if (id.type === "Identifier" && id.name === name && init !== null) {
        return { source, node: init, start }
      }
    }
  }
  const imported = importOf(source, name)
  if (imported === undefined) throw new Error(`${source.path} has no constant ${name}`)
  return findValue(imported.source, imported.name)
}

/** Follows names to their value. */
export const resolveValue = (source: Source, node: Expression): Found<Expression> => {
  if (node.type === "Identifier") {
    const found = findValue(source, node.name)
    return resolveValue(found.source, found.node)
  }
  if (node.type === "TSAsExpression" || node.type === "TSSatisfiesExpression") {
    return resolveValue(source, node.expression)
  }
  return { source, node, start: node.start }
}

const keyOf = ({ key }: ObjectProperty): string | undefined => {
  if (key.type === "Identifier") return key.name
  return key.type === "Literal" && typeof key.value === "string" ? key.value : undefined
}

/** Finds an object's property, including properties from spread objects. */
export const findProperty = (
  { node, source }: Found<Expression>,
  name: string,
): Found<ObjectProperty> | undefined => {
  if (node.type !== "ObjectExpression") return undefined
  for (const property of node.properties.toReversed()) {
    if (property.type === "SpreadElement") {
      const found = findProperty(resolveValue(source, property.argument), name)
      if (found !== undefined) return found
    } else if (keyOf(property) === name) {
      return { source, node: property, start: property.start }
    }
  }
  return undefined
}

/** The names of an object's own properties, in their order. */
export const propertiesOf = ({ properties }: ObjectExpression): ReadonlyArray<ObjectProperty> =>
  properties.filter((property) => property.type !== "SpreadElement")

/** Returns a property's value. */
export const valueOf = (found: Found<ObjectProperty>): Found<Expression> => ({
  source: found.source,
  node: found.node.value,
  start: found.start,
})
