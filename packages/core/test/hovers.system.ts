/** The hovers in an editor for the most common names, for readers without knowledge of Effect. */

import { fileURLToPath } from "node:url"
import ts from "typescript"
import { expect, it } from "vitest"

const pathOf = (path: string): string =>
  fileURLToPath(new URL(`../../tenure/${path}`, import.meta.url))

const file = pathOf("test/hovers.ts")

const entries = ["src/index.ts", "src/memory.ts", "src/postgres.ts"]

// Each line ends with the name under the mouse.
const lines = [
  "memory",
  "postgres",
  "createTenure",
  "tenure.memberships.grant",
  "tenure.memberships.extend",
  "tenure.memberships.find",
  "tenure.webhooks.create",
  "member.userId",
  "member.endDate",
  "member.metadata",
] as const

const text = `
import { type Membership, createTenure } from "tenure"
import { memory } from "tenure/memory"
import { postgres } from "tenure/postgres"
declare const member: Membership
const tenure = await createTenure({ stores: memory() })
${lines.map((line) => `;${line}`).join("\n")}
`

const options: ts.CompilerOptions = {
  strict: true,
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  customConditions: ["@tenure/source"],
  allowImportingTsExtensions: true,
  noEmit: true,
  types: [],
}

const service = ts.createLanguageService({
  getCompilationSettings: () => options,
  getScriptFileNames: () => [file, ...entries.map(pathOf)],
  getScriptVersion: () => "1",
  getScriptSnapshot: (path) => {
    const content = path === file ? text : ts.sys.readFile(path)
    return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content)
  },
  getCurrentDirectory: () => process.cwd(),
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: (path) => path === file || ts.sys.fileExists(path),
  readFile: ts.sys.readFile,
  // Otherwise, each package would have its own copy of core.
  ...(ts.sys.realpath && { realpath: ts.sys.realpath }),
})

const hoverOf = (line: string): { readonly type: string; readonly words: string } => {
  const position = text.indexOf(`;${line}\n`) + line.length
  const found = service.getQuickInfoAtPosition(file, position)
  return {
    type: ts.displayPartsToString(found?.displayParts),
    words: ts.displayPartsToString(found?.documentation),
  }
}

it.each(lines)("is a plain type and a sentence: %s", (line) => {
  const { type, words } = hoverOf(line)
  expect(type).not.toMatch(/Effect|Layer|: any|unknown/)
  expect(words).toMatch(/\w+ .*\./)
  expect(words).not.toContain("Effect")
})

const isOurs = (declaration: ts.Declaration): boolean =>
  /\/packages\/[\w-]+\/src\//.test(declaration.getSourceFile().fileName)

// A tagged union member's fields, explained by the comment before it, and fields documented by OpenTelemetry.
const isExplained = ({ parent }: ts.Declaration): boolean =>
  parent.getSourceFile().fileName.endsWith("/telemetry/tracing.ts") ||
  (ts.isTypeLiteralNode(parent) && parent.members.some((one) => one.name?.getText() === "_tag"))

const isReference = (type: ts.Type): type is ts.TypeReference =>
  "objectFlags" in type && (Number(type.objectFlags) & ts.ObjectFlags.Reference) !== 0

/** Returns a union's members, or a generic type's arguments, such as an array's element type. */
const partsOf = (type: ts.Type, checker: ts.TypeChecker): ReadonlyArray<ts.Type> => {
  if (type.isUnionOrIntersection()) return type.types
  return isReference(type) ? checker.getTypeArguments(type) : []
}

const ofErrors = new Set(["message", "name", "cause"])

/** Returns the fields without a sentence, in all types a module exports, takes and returns. */
const undocumented = (entry: string): ReadonlyArray<string> => {
  const program = service.getProgram()
  const checker = program?.getTypeChecker()
  const source = program?.getSourceFile(pathOf(entry))
  const exported = source && checker?.getSymbolAtLocation(source)
  if (checker === undefined || exported === undefined) return ["no module"]
  const seen = new Set<ts.Type>()
  const found = new Set<string>()
  const visitSymbol = (symbol: ts.Symbol, of: string): void => {
    const [declaration] = symbol.getDeclarations() ?? []
    if (declaration === undefined || !isOurs(declaration)) return
    const isType = (symbol.flags & (ts.SymbolFlags.Type | ts.SymbolFlags.Alias)) !== 0
    if (isType) visit(checker.getDeclaredTypeOfSymbol(symbol), symbol.name)
    else visit(checker.getTypeOfSymbolAtLocation(symbol, declaration), of)
    const isField = (symbol.flags & (ts.SymbolFlags.Property | ts.SymbolFlags.Method)) !== 0
    const isSilent = symbol.getDocumentationComment(checker).length === 0
    if (isField && isSilent && !/^(__|~|_tag$)/.test(symbol.name) && !ofErrors.has(symbol.name)) {
      if (!isExplained(declaration)) found.add(`${of}.${symbol.name}`)
    }
  }
  const visit = (type: ts.Type, of: string): void => {
    if (seen.has(type)) return
    seen.add(type)
    const name = (type.aliasSymbol ?? type.symbol)?.name ?? of
    for (const part of partsOf(type, checker)) visit(part, of)
    for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
      for (const parameter of signature.getParameters()) visitSymbol(parameter, of)
      visit(signature.getReturnType(), of)
    }
    for (const property of type.getProperties()) {
      visitSymbol(property, name.startsWith("__") ? of : name)
    }
  }
  for (const symbol of checker.getExportsOfModule(exported)) {
    const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0
    visitSymbol(isAlias ? checker.getAliasedSymbol(symbol) : symbol, symbol.name)
  }
  return [...found]
}

it.each(entries)("has a sentence for each field of %s", (entry) => {
  expect(undocumented(entry)).toEqual([])
})
