/** What an editor shows of the names that hosts use most, to those who do not know Effect. */

import { fileURLToPath } from "node:url"
import ts from "typescript"
import { expect, it } from "vitest"

const file = fileURLToPath(new URL("../../tenure/test/hovers.ts", import.meta.url))

// Each line ends with the name that the mouse is on.
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

/** What methods take and return, and options. */
const values = [
  ["member", "Membership"],
  ["found", 'Awaited<ReturnType<Tenure["memberships"]["find"]>>'],
  ["granting", 'Parameters<Tenure["memberships"]["grant"]>[0]'],
  ["importing", 'Parameters<Tenure["memberships"]["import"]>[0]'],
  ["extending", 'Parameters<Tenure["memberships"]["extend"]>[0]'],
  ["extendingAll", 'Parameters<Tenure["memberships"]["extendAll"]>[0]'],
  ["updating", 'Parameters<Tenure["memberships"]["update"]>[0]'],
  ["listing", 'Parameters<Tenure["memberships"]["list"]>[0]'],
  ["row", 'Awaited<ReturnType<Tenure["memberships"]["history"]>>[number]'],
  ["webhook", 'Awaited<ReturnType<Tenure["webhooks"]["create"]>>'],
  ["creating", 'Parameters<Tenure["webhooks"]["create"]>[0]'],
  ["issuing", 'Parameters<Tenure["apiKeys"]["issue"]>[0]'],
  ["publishing", 'Parameters<Tenure["events"]["publish"]>[0]'],
  ["origin", 'NonNullable<Parameters<Tenure["memberships"]["grant"]>[1]>'],
  ["options", "CreateTenureOptions"],
  ["webhookOptions", 'NonNullable<CreateTenureOptions["webhooks"]>'],
  ["inMemory", "NonNullable<Parameters<typeof memory>[0]>"],
  ["database", "Extract<Parameters<typeof postgres>[0], { url: unknown }>"],
] as const

const text = `
import { type CreateTenureOptions, type Membership, type Tenure, createTenure } from "tenure"
import { memory } from "tenure/memory"
import { postgres } from "tenure/postgres"
${values.map(([name, type]) => `declare const ${name}: ${type}`).join("\n")}
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
  getScriptFileNames: () => [file],
  getScriptVersion: () => "1",
  getScriptSnapshot: (path) => {
    const content = path === file ? text : ts.sys.readFile(path)
    return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content)
  },
  getCurrentDirectory: () => process.cwd(),
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: (path) => path === file || ts.sys.fileExists(path),
  readFile: ts.sys.readFile,
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

/** The fields of a value, also those of one member of a union, that have no sentence. */
const undocumented = (name: string): ReadonlyArray<string> => {
  const program = service.getProgram()
  const source = program?.getSourceFile(file)
  const checker = program?.getTypeChecker()
  if (source === undefined || checker === undefined) return ["no program"]
  const found = source.statements
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => [...declarationList.declarations])
    .find((declaration) => declaration.name.getText(source) === name)
  if (found === undefined) return ["no such value"]
  const given = checker.getTypeAtLocation(found)
  return (given.isUnion() ? given.types : [given])
    .flatMap((type) => type.getProperties())
    .filter((property) => property.getDocumentationComment(checker).length === 0)
    .map((property) => property.getName())
}

it.each(values.map(([name]) => name))("each field of %s has a sentence", (name) => {
  expect(undocumented(name)).toEqual([])
})
