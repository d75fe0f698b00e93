// Whole names and moves for every TypeScript file and TypeScript block of the repository, in place.
// usage: node rename.mjs CHECKOUT MOVES NAMES
import fs from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
const [checkout, movesFile, namesFile] = process.argv.slice(2)
const store = path.join(checkout, "node_modules/.pnpm")
const ts = createRequire(import.meta.url)(
  path.join(
    store,
    fs.readdirSync(store).find((d) => d.startsWith("typescript@5.9")),
    "node_modules/typescript",
  ),
)
const K = ts.SyntaxKind
const rows = (f) =>
  fs
    .readFileSync(f, "utf8")
    .trim()
    .split("\n")
    .map((l) => l.split("\t"))
const tsv = (f, more) => [...rows(f).slice(1), ...rows(new URL(more, import.meta.url))]
const rel = (p) => path.relative(checkout, p)

// ---- files and where they go
const dest = new Map() // old path → new path
const virtual = new Map() // path of a virtual file → { file, start, end, prefix, code }
const walk = (d) => {
  for (const e of fs.readdirSync(d, { withFileTypes: true })) {
    if (["node_modules", "dist", ".git"].includes(e.name)) continue
    const p = path.join(d, e.name)
    if (e.isDirectory()) walk(p)
    else if (/\.tsx?$/.test(e.name) && !e.name.endsWith(".d.ts")) dest.set(rel(p), rel(p))
  }
}
for (const d of ["packages", "examples", "docs"]) walk(path.join(checkout, d))
for (const f of [...dest.keys()])
  if (
    f.startsWith("docs/hosts/test/") ||
    (f.startsWith("packages/tenure/src/") && !f.includes("/bin/"))
  )
    dest.delete(f)
const moves = new Map(tsv(movesFile, "moves.more.tsv"))
const targets = (f) => {
  const n = moves.get(f)
  if (n === undefined || n.endsWith("/")) return f
  if (n.endsWith(".sql")) return "packages/postgres/src/schema/migration-0001.ts"
  if (n === "-") return f
  return n
}
const inProduct = (f) =>
  /^packages\/(core|postgres|memory|embedded|redis|node-http|express|fastify|fetch|client|cli|console|testing)\/(src|page)\//.test(
    f,
  )
const lost = []
for (const f of dest.keys()) {
  if (inProduct(f)) {
    if (!moves.has(f)) lost.push(f)
    dest.set(f, targets(f))
  }
}
if (lost.length) console.log("without a row:", lost.join(" "))
// ---- virtual files: code in Markdown and in doc comments
const fence = /^([ \t]*(?:\* ?)?)```ts\n(.*?)^[ \t]*(?:\* ?)?```[ \t]*$/gms
const addVirtual = (file) => {
  const text = fs.readFileSync(path.join(checkout, file), "utf8")
  let k = 0
  for (const m of text.matchAll(fence)) {
    const prefix = m[1]
    const start = m.index + m[0].indexOf("```ts\n") + 6
    const raw = m[2]
    const code = /\*/.test(prefix) ? raw.replaceAll(/^[ \t]*\* ?/gm, "") : raw
    const v = path.join(
      path.dirname(file),
      `zz-${path.basename(file).replaceAll(/\W/g, "_")}-${k++}.ts`,
    )
    virtual.set(v, {
      file,
      start,
      end: start + raw.length,
      prefix: /\*/.test(prefix) ? prefix : "",
      code,
    })
  }
}
const walkMd = (d) => {
  for (const e of fs.readdirSync(d, { withFileTypes: true })) {
    if (["node_modules", "dist", ".git"].includes(e.name) || e.name === "CHANGELOG.md") continue
    const p = path.join(d, e.name)
    if (e.isDirectory()) walkMd(p)
    else if (e.name.endsWith(".md")) addVirtual(rel(p))
  }
}
for (const d of ["docs", "packages", "examples"]) walkMd(path.join(checkout, d))
addVirtual("README.md")
for (const f of [...dest.keys()]) if (/\/src\//.test(f) && !virtual.has(f)) addVirtual(f)
// blocks of root or docs resolve packages from docs/; those of packages from their own package
for (const [v, i] of [...virtual])
  if (!v.startsWith("docs/")) {
    const w = "docs/" + "zz-" + v.replaceAll(/[^\w]/g, "_") + ".ts"
    virtual.delete(v)
    virtual.set(w, i)
  }
for (const v of virtual.keys()) dest.set(v, v)

// ---- names
const names = new Map(tsv(namesFile, "names.more.tsv").map(([o, n]) => [o, n.split(" ")[0]]))
const key = (f) =>
  f
    .replace("packages/", "")
    .replace("/src/", "/")
    .replace(/\.tsx?$/, "")
const renamed = (f, n) => {
  const x = names.get(key(f) + "#" + n)
  return x === undefined || x.startsWith("(") || x === "unchanged" || !/^\w+$/.test(x) ? n : x
}
const fixturesFile = "packages/testing/src/support/fixtures.ts"
const settingFile = "packages/core/src/base/Setting.ts"
const keepNamespace = {
  has: (f) =>
    f === settingFile || f === "packages/testing/src/support/fixtures.ts" || !inProduct(f),
}
// ---- by hand, before
const hand = fs.existsSync(new URL("hand.json", import.meta.url))
  ? JSON.parse(fs.readFileSync(new URL("hand.json", import.meta.url), "utf8"))
  : []
const host = ts.createCompilerHost({})
const readFile = host.readFile.bind(host),
  getSourceFile = host.getSourceFile.bind(host),
  fileExists = host.fileExists.bind(host)
host.fileExists = (n) => virtual.has(rel(n)) || fileExists(n)
host.readFile = (n) => virtual.get(rel(n))?.code ?? readFile(n)
host.getSourceFile = (n, ...r) => {
  const v = virtual.get(rel(n))
  if (v) return ts.createSourceFile(n, v.code, r[0], true)
  const h = hand.filter(([f]) => n === path.join(checkout, f))
  if (!h.length) return getSourceFile(n, ...r)
  let t = readFile(n)
  for (const [f, a, b] of h) {
    if (!t.includes(a)) console.log("hand edit not found:", f, a)
    t = t.replace(a, () => b)
  }
  return ts.createSourceFile(n, t, r[0], true, n.endsWith("x") ? ts.ScriptKind.TSX : undefined)
}
const options = {
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  jsx: ts.JsxEmit.ReactJSX,
  jsxImportSource: "preact",
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  customConditions: ["@tenure/source"],
  allowImportingTsExtensions: true,
  noEmit: true,
  strict: true,
  skipLibCheck: true,
  exactOptionalPropertyTypes: true,
  types: ["node"],
  typeRoots: [path.join(checkout, "packages/node-http/node_modules/@types")],
  verbatimModuleSyntax: true,
  resolveJsonModule: true,
}
const program = ts.createProgram(
  [...dest.keys()].map((f) => path.join(checkout, f)),
  options,
  host,
)
const checker = program.getTypeChecker()
const sfOf = (f) => program.getSourceFile(path.join(checkout, f))
const resolve = (spec, sf) => {
  const r = ts.resolveModuleName(spec, sf.fileName, options, {
    fileExists,
    readFile,
    realpath: ts.sys.realpath,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  }).resolvedModule?.resolvedFileName
  return r && rel(fs.realpathSync(r))
}
const isOurs = (r) => r !== undefined && (dest.has(r) || r.startsWith("packages/tenure/src/"))

const declOf = (sym) => {
  const s = sym && (sym.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(sym) : sym)
  const d = s?.declarations?.[0]
  return d && { s, d, file: rel(d.getSourceFile().fileName) }
}
const isTop = (d) => {
  let n = d
  while (ts.isBindingElement(n)) n = n.parent.parent
  if (ts.isVariableDeclaration(n)) n = n.parent.parent
  return n?.parent && ts.isSourceFile(n.parent)
}
const isModuleSym = (sym) => {
  const i = declOf(sym)
  return i && ts.isSourceFile(i.d) ? i : undefined
}
const topNames = (sf) => {
  const r = new Map()
  for (const s of sf.statements) {
    const exp = !!s.modifiers?.some((m) => m.kind === K.ExportKeyword)
    const put = (n) => r.set(n, exp || r.get(n) === true)
    if (ts.isVariableStatement(s))
      for (const d of s.declarationList.declarations) {
        if (ts.isIdentifier(d.name)) put(d.name.text)
        else d.name.elements.forEach((e) => e.name && ts.isIdentifier(e.name) && put(e.name.text))
      }
    else if (s.name && ts.isIdentifier(s.name)) put(s.name.text)
  }
  return r
}
const parts = new Map()
for (const [f, d] of dest) (parts.get(d) ?? parts.set(d, []).get(d)).push(f)
// the head of a module first, then by the table
const rowOf = new Map([...moves.keys()].map((f, i) => [f, i]))
for (const l of parts.values()) l.sort((a, b) => (rowOf.get(a) ?? 1e9) - (rowOf.get(b) ?? 1e9))
const tops = new Map([...dest.keys()].map((f) => [f, topNames(sfOf(f))]))

// ---- names of private declarations that collide in a merged module, or with an import's new name
const cap = (s) => s[0].toUpperCase() + s.slice(1)
const privateNames = new Map()
const importsOf = (sf) => sf.statements.filter(ts.isImportDeclaration)
const externalLocals = (sf) =>
  importsOf(sf)
    .filter((s) => !isOurs(resolve(s.moduleSpecifier.text, sf)))
    .flatMap((s) =>
      [
        s.importClause?.name,
        ...(s.importClause?.namedBindings
          ? ts.isNamespaceImport(s.importClause.namedBindings)
            ? [s.importClause.namedBindings.name]
            : s.importClause.namedBindings.elements.map((e) => e.name)
          : []),
      ]
        .filter(Boolean)
        .map((n) => n.text),
    )
const importedNames = (f) => {
  const r = new Set()
  const v = (n) => {
    if (ts.isImportDeclaration(n) || ts.isExportDeclaration(n)) return
    if (ts.isIdentifier(n)) {
      const i = declOf(checker.getSymbolAtLocation(n))
      if (i && dest.has(i.file) && i.file !== f && isTop(i.d)) r.add(renamed(i.file, n.text))
    }
    ts.forEachChild(n, v)
  }
  v(sfOf(f))
  return r
}
const localsOf = new Map()
const localNames = (f) => {
  if (!localsOf.has(f)) {
    const set = new Set()
    const v = (n) => {
      if (
        (ts.isVariableDeclaration(n) ||
          ts.isParameter(n) ||
          ts.isBindingElement(n) ||
          ts.isFunctionDeclaration(n) ||
          ts.isTypeParameterDeclaration(n)) &&
        n.name &&
        ts.isIdentifier(n.name) &&
        !isTop(n)
      ) {
        if (
          !(
            ts.isParameter(n) &&
            (ts.isFunctionTypeNode(n.parent) || ts.isMethodSignature(n.parent))
          )
        )
          set.add(n.name.text)
      }
      ts.forEachChild(n, v)
    }
    v(sfOf(f))
    localsOf.set(f, set)
  }
  return localsOf.get(f)
}
for (const [d, list] of parts) {
  const used = new Map()
  for (const f of list) for (const [n, exp] of tops.get(f)) if (exp) used.set(renamed(f, n), f)
  for (const f of list)
    for (const n of externalLocals(sfOf(f))) if (!used.has(n)) used.set(n, "external")
  const imported = new Set(list.flatMap((f) => [...importedNames(f)]))
  for (const f of list)
    for (const [n, exp] of tops.get(f))
      if (!exp) {
        let m = n
        const base = path
          .basename(f)
          .replace(/(\.sql|\.test)*\.tsx?$/, "")
          .replaceAll(/\W/g, "")
        if (
          (used.has(m) && used.get(m) !== f) ||
          imported.has(m) ||
          list.some((g) => g !== f && localNames(g).has(m))
        )
          m = /^[A-Z]/.test(n) ? cap(base) + n : base[0].toLowerCase() + base.slice(1) + cap(n)
        while (used.has(m) || imported.has(m)) m += "Of"
        used.set(m, f)
        if (m !== n) privateNames.set(f + "#" + n, m)
      }
}
const shadows = []
const newName = (f, n) => privateNames.get(f + "#" + n) ?? renamed(f, n)
for (const [d, list] of parts)
  for (const f of list)
    for (const [n, exp] of tops.get(f))
      if (exp) {
        const nn = newName(f, n)
        for (const g of list)
          if ((g !== f || nn !== n) && localNames(g).has(nn))
            shadows.push(`${key(f)}#${n} → ${nn} hidden in ${g}`)
      }
// a module in which an exported name stands twice gets a clash
const problems = []
const note = (m) => problems.push(m)
for (const [d, list] of parts) {
  const mine = new Map()
  for (const f of list)
    for (const [n, exp] of tops.get(f))
      if (exp) {
        const nn = newName(f, n)
        if (mine.has(nn) && mine.get(nn) !== f)
          note(`clash: ${d}: ${nn} of ${mine.get(nn)} and ${f}`)
        mine.set(nn, f)
      }
}

// ---- which specifier names a symbol
const packageOf = (f) => (/^(packages|examples)\/[^/]+/.exec(f) ?? ["docs"])[0]
const entries = JSON.parse(fs.readFileSync(new URL("entries.json", import.meta.url), "utf8")) // package → { newFile: subpath }
const manifests = new Map()
const dependsOn = (a, pkg) => {
  if (!manifests.has(a))
    manifests.set(a, JSON.parse(fs.readFileSync(path.join(checkout, a, "package.json"), "utf8")))
  const m = manifests.get(a)
  return (
    m.name === pkg ||
    [m.dependencies, m.devDependencies, m.peerDependencies].some((x) => x?.[pkg] !== undefined)
  )
}
const usage = new Map() // core symbols used outside of core: "newFile#name" → { type, from: Set }
const specOf = (from, to, name, type) => {
  const a = packageOf(from),
    b = packageOf(to)
  if (a === b && !virtual.has(from)) {
    let r = path.relative(path.dirname(from), to)
    if (!r.startsWith(".")) r = "./" + r
    return r
  }
  if (
    b.startsWith("examples") ||
    b === "docs" ||
    /packages\/(benchmark|faults|fuzz|site|openapi)$/.test(b)
  ) {
    const r = path.relative(path.dirname(from), to)
    return r.startsWith(".") ? r : "./" + r
  }
  const pkg = b === "packages/tenure" ? "tenure" : "@tenure/" + b.split("/")[1]
  if (!virtual.has(from) && a.startsWith("packages/") && !dependsOn(a, pkg)) {
    const r = path.relative(path.dirname(from), to)
    return r.startsWith(".") ? r : "./" + r
  }
  if (b === "packages/core") {
    const k = to + "#" + name
    const u = usage.get(k) ?? { type: true, from: new Set() }
    if (!type) u.type = false
    u.from.add(virtual.get(from)?.file ?? from)
    usage.set(k, u)
    return "CORE:" + k
  }
  if (!entries[b]?.[to] && !to.includes("/test/") && name !== "*") {
    const index = `${b}/src/index.ts`
    if (to !== index && !indexExports(b).has(to + "#" + name)) {
      const r = path.relative(path.dirname(from), to)
      return r.startsWith(".") ? r : "./" + r
    }
  }
  const s = entries[b]?.[to] ?? (/\/test\//.test(to) ? undefined : ".")
  if (s === undefined) {
    if (/\/test\//.test(to)) {
      const r = path.relative(path.dirname(from), to)
      return r.startsWith(".") ? r : "./" + r
    }
    note(`no entry for ${to} from ${from}`)
    return pkg + "/" + to
  }
  return s === "." ? pkg : pkg + "/" + s
}

const indexes = new Map()
const indexExports = (b) => {
  if (!indexes.has(b)) {
    const set = new Set()
    const m = checker.getSymbolAtLocation(sfOf(`${b}/src/index.ts`))
    for (const e of m ? checker.getExportsOfModule(m) : []) {
      const i = declOf(e)
      if (i && dest.has(i.file))
        set.add(dest.get(i.file) + "#" + newName(i.file, i.s.escapedName.toString()))
    }
    indexes.set(b, set)
  }
  return indexes.get(b)
}
// statements are read as sql.extend; those of another aggregate as outboxSql.publish
const sqlName = (to, f) => {
  const t = dest.get(to),
    d = dest.get(f)
  if (
    !t.endsWith(".sql.ts") ||
    t === d ||
    d.endsWith(".sql.ts") ||
    !/packages\/postgres\/src/.test(d)
  )
    return undefined
  const base = path.basename(t, ".sql.ts")
  return path.basename(d, ".ts") === base ? "statements" : base + "Statements"
}
const modules = new Map()
for (const [f, d] of dest) {
  const sf = sfOf(f)
  const text = sf.text
  const edits = []
  const need = []
  const deps = new Set()
  const want = (file, name, typeOnly, ns, alias) => {
    if (ns && file === fixturesFile && packageOf(f) !== "packages/testing") {
      need.push({ t: dest.get(file), file, name: "Fixture", typeOnly: false, fixtures: true })
      return
    }
    if (ns && file === settingFile && packageOf(f) !== "packages/core") {
      need.push({ t: dest.get(file), file, name: "Setting", typeOnly: false, setting: true })
      return
    }
    const t = dest.get(file)
    if (!typeOnly && file !== f) deps.add(file)
    if (t !== d) need.push({ t, file, name, typeOnly, ns, alias })
  }
  const isTypePos = (n) => {
    for (let p = n.parent; p; p = p.parent) {
      if (
        ts.isTypeNode(p) &&
        !(
          ts.isExpressionWithTypeArguments(p) &&
          ts.isHeritageClause(p.parent) &&
          p.parent.token === K.ExtendsKeyword &&
          ts.isClassLike(p.parent.parent)
        )
      )
        return !ts.isTypeQueryNode(p)
      if (ts.isInterfaceDeclaration(p) || ts.isTypeAliasDeclaration(p)) return true
      if (ts.isStatement(p) || ts.isExpression(p)) {
        if (ts.isTypeNode(p)) continue
        return false
      }
    }
    return false
  }
  const edit = (n, s) => edits.push([n.getStart(sf), n.end, s])
  const shadow = (n, nn) => {
    const l = checker.resolveName(nn, n, ts.SymbolFlags.Value, false)
    const dd = l?.declarations?.[0]
    if (
      dd &&
      !isTop(dd) &&
      !ts.isImportSpecifier(dd) &&
      !ts.isNamespaceImport(dd) &&
      !ts.isImportClause(dd) &&
      dd.getSourceFile() === sf
    )
      return l
  }
  const locals = new Map()
  const local = (sym, nn) => {
    if (!locals.has(sym)) locals.set(sym, "own" + cap(nn))
  }
  const targetOf = (n) =>
    ts.isShorthandPropertyAssignment(n.parent) && n.parent.name === n
      ? checker.getShorthandAssignmentValueSymbol(n.parent)
      : checker.getSymbolAtLocation(n)
  const specText = (arg) => {
    const r = resolve(arg.text, sf)
    if (r === undefined || !dest.has(r)) return
    edit(arg, JSON.stringify(specOf(d, dest.get(r), "*", false)))
    return r
  }
  const visit = (n) => {
    if (ts.isImportDeclaration(n) || ts.isExportDeclaration(n)) return "skip"
    if (
      ts.isCallExpression(n) &&
      n.expression.kind === K.ImportKeyword &&
      n.arguments[0] &&
      ts.isStringLiteralLike(n.arguments[0])
    )
      specText(n.arguments[0])
    if (ts.isImportTypeNode(n) && ts.isLiteralTypeNode(n.argument)) {
      const r = specText(n.argument.literal)
      if (r && n.qualifier && ts.isIdentifier(n.qualifier)) {
        const nn = newName(r, n.qualifier.text)
        if (nn !== n.qualifier.text) edit(n.qualifier, nn)
      }
    }
    if (
      ts.isBindingElement(n) &&
      !n.propertyName &&
      ts.isIdentifier(n.name) &&
      ts.isObjectBindingPattern(n.parent)
    ) {
      const p = checker.getTypeAtLocation(n.parent).getProperty(n.name.text)
      const i = declOf(p)
      if (i && dest.has(i.file) && isTop(i.d)) {
        const nn = newName(i.file, n.name.text)
        if (nn !== n.name.text) edits.push([n.name.getStart(sf), n.name.getStart(sf), nn + ": "])
      }
    }
    if (ts.isIdentifier(n)) {
      const p = n.parent
      if (
        (ts.isPropertyAccessExpression(p) && p.name === n) ||
        (ts.isQualifiedName(p) && p.right === n)
      ) {
        const left = ts.isQualifiedName(p) ? p.left : p.expression
        const i = declOf(checker.getSymbolAtLocation(n))
        const l = ts.isIdentifier(left) ? checker.getSymbolAtLocation(left) : undefined
        const m = l && isModuleSym(l)
        if (m && dest.has(m.file)) {
          if (i && dest.has(i.file) && !ts.isSourceFile(i.d)) {
            const nn = newName(i.file, n.text)
            const type = isTypePos(p)
            if (keepNamespace.has(m.file)) {
              edit(n, nn)
              want(m.file, left.text, type && ts.isQualifiedName(p), true)
            } else if (sqlName(i.file, f)) {
              edit(p, sqlName(i.file, f) + "." + nn)
              want(
                i.file,
                sqlName(i.file, f),
                (type && ts.isQualifiedName(p)) || !(i.s.flags & ts.SymbolFlags.Value),
                true,
              )
            } else {
              const sh = shadow(p, nn)
              if (sh) local(sh, nn)
              edit(p, nn)
              want(
                i.file,
                nn,
                (type && ts.isQualifiedName(p)) || !(i.s.flags & ts.SymbolFlags.Value),
              )
            }
            return "skip"
          }
        } else if (i && dest.has(i.file) && isTop(i.d)) {
          const nn = newName(i.file, n.text)
          if (nn !== n.text) edit(n, nn)
        }
        return
      }
      const sym = targetOf(n)
      const m = sym && sym.flags & ts.SymbolFlags.Alias ? isModuleSym(sym) : undefined
      if (m && dest.has(m.file)) {
        const isLeft =
          (ts.isPropertyAccessExpression(p) && p.expression === n) ||
          (ts.isQualifiedName(p) && p.left === n)
        if (keepNamespace.has(m.file)) {
          want(m.file, n.text, false, true)
          return
        }
        if (!isLeft) {
          note(`${f}: namespace ${n.text} used as a value`)
          want(m.file, n.text, false, true)
        }
        return
      }
      const i = declOf(sym)
      if (!i || !dest.has(i.file) || !isTop(i.d)) return
      if (ts.isModuleDeclaration(p)) return
      if (ts.isBindingElement(p) && p.propertyName === n) {
        const nn = newName(i.file, n.text)
        if (ts.isIdentifier(p.name) && p.name.text === nn)
          edits.push([p.getStart(sf), p.name.end, nn])
        else if (nn !== n.text) edit(n, nn)
        return
      }
      if (i.file === settingFile && packageOf(f) !== "packages/core" && i.file !== f) {
        const nn = "Setting." + newName(i.file, i.s.escapedName.toString())
        edit(n, ts.isShorthandPropertyAssignment(p) ? `${n.text}: ${nn}` : nn)
        want(settingFile, "Setting", false, true)
        return
      }
      const name = i.s.escapedName.toString()
      if (name === "default" || ts.isSourceFile(i.d)) return
      if (
        (ts.isPropertyAssignment(p) && p.name === n) ||
        (ts.isPropertySignature(p) && p.name === n) ||
        (ts.isMethodDeclaration(p) && p.name === n) ||
        (ts.isJsxAttribute(p) && p.name === n)
      )
        return
      if (i.file !== f && sqlName(i.file, f) && !ts.isExportSpecifier(p)) {
        const nn = sqlName(i.file, f) + "." + newName(i.file, name)
        edit(n, ts.isShorthandPropertyAssignment(p) ? `${n.text}: ${nn}` : nn)
        want(i.file, sqlName(i.file, f), isTypePos(n) || !(i.s.flags & ts.SymbolFlags.Value), true)
        return
      }
      const nn = newName(i.file, name)
      const spec0 = sym.declarations?.[0]
      if (
        dest.get(i.file) !== d &&
        (!inProduct(f) || parts.get(d).some((x) => tops.get(x).has(nn) || localNames(x).has(nn))) &&
        ts.isImportSpecifier(spec0 ?? n) &&
        spec0.propertyName &&
        spec0.propertyName.text !== n.text
      ) {
        want(i.file, nn, isTypePos(n) || !(i.s.flags & ts.SymbolFlags.Value), false, n.text)
        return
      }
      if (nn !== n.text) {
        const sh = shadow(n, nn)
        if (sh) local(sh, nn)
        if (ts.isShorthandPropertyAssignment(p)) edit(n, `${n.text}: ${nn}`)
        else if (
          ts.isBindingElement(p) &&
          p.name === n &&
          !p.propertyName &&
          ts.isObjectBindingPattern(p.parent)
        )
          edit(n, `${n.text}: ${nn}`)
        else edit(n, nn)
      }
      if (i.file !== f) want(i.file, nn, isTypePos(n) || !(i.s.flags & ts.SymbolFlags.Value))
    }
  }
  const go = (n) => {
    if (visit(n) === "skip") return
    ts.forEachChild(n, (c) => {
      if (ts.isPropertyAccessExpression(n) || ts.isQualifiedName(n)) {
        const left = ts.isQualifiedName(n) ? n.left : n.expression
        if (c === left && ts.isIdentifier(left)) {
          const m = isModuleSym(checker.getSymbolAtLocation(left))
          if (m && dest.has(m.file) && !keepNamespace.has(m.file)) return
        }
      }
      go(c)
    })
  }
  for (const s of sf.statements) go(s)
  if (locals.size) {
    const fix = (n) => {
      if (ts.isIdentifier(n)) {
        const short = ts.isShorthandPropertyAssignment(n.parent) && n.parent.name === n
        const sym = targetOf(n)
        if (sym && locals.has(sym)) {
          const nn = locals.get(sym)
          const be =
            ts.isBindingElement(n.parent) &&
            n.parent.name === n &&
            !n.parent.propertyName &&
            ts.isObjectBindingPattern(n.parent.parent)
          edit(n, short || be ? `${n.text}: ${nn}` : nn)
        }
      }
      ts.forEachChild(n, fix)
    }
    fix(sf)
  }
  const externals = []
  const reexports = []
  for (const s of sf.statements) {
    if (ts.isImportDeclaration(s)) {
      const r = resolve(s.moduleSpecifier.text, sf)
      const sideEffect = !s.importClause
      if (!isOurs(r)) externals.push(s.getText(sf))
      else if (sideEffect)
        externals.push(`import ${JSON.stringify(specOf(d, dest.get(r) ?? r, "*", false))}`)
      edits.push([s === sf.statements[0] ? s.getStart(sf) : s.getFullStart(), s.end, ""])
    } else if (
      ts.isExportDeclaration(s) &&
      !s.moduleSpecifier &&
      s.exportClause &&
      ts.isNamedExports(s.exportClause)
    ) {
      edits.push([s.getFullStart(), s.end, ""])
      for (const e of s.exportClause.elements) {
        const i = declOf(checker.getExportSpecifierLocalTargetSymbol(e))
        if (!i || !dest.has(i.file)) {
          reexports.push(`export { ${e.getText(sf)} }`)
          continue
        }
        if (dest.get(i.file) === d) {
          const own = newName(i.file, (e.propertyName ?? e.name).text)
          const as = e.propertyName ? e.name.text : own
          if (i.file === f || as !== own)
            reexports.push(`export { ${own === as ? own : `${own} as ${as}`} }`)
          continue
        }
        reexports.push(
          `export { ${s.isTypeOnly || e.isTypeOnly ? "type " : ""}${newName(i.file, (e.propertyName ?? e.name).text)} } from ${JSON.stringify(specOf(d, dest.get(i.file), newName(i.file, (e.propertyName ?? e.name).text), s.isTypeOnly || e.isTypeOnly))}`,
        )
      }
    } else if (ts.isExportDeclaration(s) && s.moduleSpecifier) {
      const r = resolve(s.moduleSpecifier.text, sf)
      edits.push([s.getFullStart(), s.end, ""])
      const doc = text.slice(s.getFullStart(), s.getStart(sf)).trim()
      if (!dest.has(r)) {
        reexports.push(s.getText(sf))
        continue
      }
      if (dest.get(r) === d) continue
      if (s.exportClause && ts.isNamespaceExport(s.exportClause)) {
        reexports.push(
          `export * as ${s.exportClause.name.text} from ${JSON.stringify(specOf(d, dest.get(r), "*", false))}`,
        )
        continue
      }
      if (!s.exportClause) {
        reexports.push(
          `export ${s.isTypeOnly ? "type " : ""}* from ${JSON.stringify(specOf(d, dest.get(r), "*", false))}`,
        )
        continue
      }
      for (const e of s.exportClause.elements) {
        const i = declOf(checker.getSymbolAtLocation(e.name))
        const file = i && dest.has(i.file) ? i.file : r
        const own = newName(file, (e.propertyName ?? e.name).text)
        if (dest.get(file) === d) continue
        const as =
          e.propertyName && newName(file, e.propertyName.text) !== e.name.text
            ? ` as ${e.name.text}`
            : ""
        reexports.push(
          `export { ${s.isTypeOnly || e.isTypeOnly ? "type " : ""}${own}${as} } from ${JSON.stringify(specOf(d, dest.get(file), own, s.isTypeOnly || e.isTypeOnly))}`,
        )
      }
    }
  }
  edits.sort((a, b) => b[0] - a[0] || b[1] - a[1])
  let body = text
  let last = Infinity
  for (const [a, b, s] of edits) {
    if (b > last) continue
    body = body.slice(0, a) + s + body.slice(b)
    last = a
  }
  modules.set(f, {
    body: body.trim(),
    need,
    externals,
    reexports,
    deps,
    changed: edits.some(([a, b, s]) => text.slice(a, b) !== s),
  })
}
// ---- merge
const texts = new Map()
for (const [d, list] of parts) {
  const order = []
  const seen = new Set()
  const go = (f) => {
    if (seen.has(f)) return
    seen.add(f)
    for (const x of modules.get(f).deps) if (dest.get(x) === d) go(x)
    order.push(f)
  }
  for (const f of list) go(f)
  const ext = new Map()
  for (const f of list)
    for (const e of modules.get(f).externals) {
      const sf = ts.createSourceFile("x.ts", e, ts.ScriptTarget.Latest, true)
      const s = sf.statements[0]
      const spec = s.moduleSpecifier.text
      const attr = s.attributes ? " " + s.attributes.getText(sf) : ""
      const c = s.importClause
      const put = (local, imported, type) => {
        const o = ext.get(local)
        if (o && (o.spec !== spec || o.imported !== imported))
          note(`clash: ${d}: ${local} from ${o.spec} and ${spec}`)
        ext.set(local, { spec, attr, imported, type: type && (o?.type ?? true) })
      }
      if (!c) put("!" + spec, "!", false)
      if (c?.name) put(c.name.text, "default", c.isTypeOnly)
      if (c?.namedBindings) {
        if (ts.isNamespaceImport(c.namedBindings)) put(c.namedBindings.name.text, "*", c.isTypeOnly)
        else
          for (const e of c.namedBindings.elements)
            put(e.name.text, (e.propertyName ?? e.name).text, c.isTypeOnly || e.isTypeOnly)
      }
    }
  const lines = []
  const named = new Map()
  const add = (spec, s, type) => {
    const l = named.get(spec) ?? named.set(spec, new Map()).get(spec)
    l.set(s, (l.get(s) ?? true) && type)
  }
  for (const [local, { spec, attr, imported, type }] of ext) {
    if (imported === "!") lines.push(`import ${JSON.stringify(spec)}`)
    else if (imported === "*")
      lines.push(`import ${type ? "type " : ""}* as ${local} from ${JSON.stringify(spec)}${attr}`)
    else if (imported === "default")
      lines.push(`import ${type ? "type " : ""}${local} from ${JSON.stringify(spec)}${attr}`)
    else add(spec, imported === local ? local : `${imported} as ${local}`, type)
  }
  const by = new Map()
  for (const f of list)
    for (const { t, name, typeOnly, ns, setting, fixtures, alias } of modules.get(f).need) {
      const spec = fixtures
        ? "@tenure/testing"
        : setting
          ? "CORE:packages/core/src/base/setting.ts#*"
          : specOf(d, t, ns ? "*" : name, typeOnly)
      const k = spec + "|" + name + "|" + (alias ?? "")
      const o = by.get(k)
      by.set(k, { spec, name, ns, alias, type: typeOnly && (o?.type ?? true) })
    }
  const nameSpecs = new Map()
  for (const { spec, name: exportedName, alias } of by.values()) {
    const name = alias ?? exportedName
    if (nameSpecs.has(name))
      note(`clash: ${d} imports ${name} from ${spec} and ${nameSpecs.get(name)}`)
    nameSpecs.set(name, spec)
  }
  for (const { spec, name, ns, type, alias } of by.values())
    if (ns) lines.push(`import ${type ? "type " : ""}* as ${name} from ${JSON.stringify(spec)}`)
    else add(spec, alias && alias !== name ? `${name} as ${alias}` : name, type)
  texts.set(d, {
    list,
    order,
    lines,
    named,
    reexports: [...new Set(list.flatMap((f) => modules.get(f).reexports))],
  })
}
usage.set("packages/core/src/base/setting.ts#*", { type: false, from: new Set() })
// ---- entry points of core: where each symbol used outside is public
const sub = JSON.parse(fs.readFileSync(new URL("subpaths.json", import.meta.url), "utf8"))
const subpathOf = (k) => {
  const [file, name] = k.split("#")
  return sub.symbols[name] ?? sub.files[file.replace("packages/core/src/", "")] ?? "internal"
}
const exported = new Map()
for (const [k, u] of usage) {
  const s = subpathOf(k)
  if (k.endsWith("#*") && !["signature", "http-router", "openapi"].includes(s)) {
    const [file] = k.split("#")
    note(`namespace of core from outside: ${k} ${[...u.from].slice(0, 3).join(" ")}`)
  }
  ;(exported.get(s) ?? exported.set(s, new Map()).get(s)).set(k, u)
}
const rootSymbols = new Set(sub.root)
const prefersRoot = (d) => {
  const f = virtual.get(d)?.file ?? d
  return (
    /\.md$|^docs\/|^examples\/(?!custom-store)|^packages\/(cli|benchmark|fuzz|faults|express|fastify|fetch|node-http)\//.test(
      f,
    ) && !f.endsWith("custom-store.md")
  )
}
const coreSpec = (spec, d) => {
  if (!spec.startsWith("CORE:")) return spec
  let s = subpathOf(spec.slice(5))
  if (s === "store" && rootSymbols.has(spec.split("#")[1]) && prefersRoot(d)) s = "."
  return s === "." ? "@tenure/core" : "@tenure/core/" + s
}
const publicSpec = (spec, isPublic, d) => {
  const c = coreSpec(spec, d)
  if (!isPublic) return c
  return c
    .replace(/^@tenure\/core\/?/, "tenure/")
    .replace(/^tenure\/$/, "tenure")
    .replace(/^@tenure\/node-http$/, "tenure/node")
    .replace(/^@tenure\/postgres\/within$/, "tenure/within")
    .replace(/^@tenure\/testing\/postgres-server$/, "tenure/testing")
    .replace(/^@tenure\//, "tenure/")
}
let written = 0
const out = new Map()
for (const [d, { list, order, lines, named, reexports }] of texts) {
  const importsTenure = list.some((f) =>
    importsOf(sfOf(f)).some((s) => /^tenure(\/|$)/.test(s.moduleSpecifier.text)),
  )
  const merged = new Map()
  for (const [spec, l] of named) {
    const s = publicSpec(spec, importsTenure, d)
    const m = merged.get(s) ?? merged.set(s, new Map()).get(s)
    for (const [n, t] of l) m.set(n, (m.get(n) ?? true) && t)
  }
  const all = lines.map((l) =>
    l.replace(/"CORE:[^"]*"/, (x) => JSON.stringify(publicSpec(JSON.parse(x), importsTenure, d))),
  )
  for (const [spec, l] of merged) {
    const names = [...l.keys()].sort()
    const everyType = [...l.values()].every(Boolean)
    all.push(
      everyType
        ? `import type { ${names.join(", ")} } from ${JSON.stringify(spec)}`
        : `import { ${names.map((n) => (l.get(n) ? "type " : "") + n).join(", ")} } from ${JSON.stringify(spec)}`,
    )
  }
  const fixCore = (t) =>
    t.replace(/"CORE:[^"]*"/g, (x) => JSON.stringify(publicSpec(JSON.parse(x), importsTenure, d)))
  const bodies = order.map((f) => fixCore(modules.get(f).body))
  const bang = bodies.map((b) => b.match(/^#![^\n]*\n/)?.[0]).find(Boolean) ?? ""
  const clean = bodies.map((b) => b.replace(/^#![^\n]*\n/, ""))
  // the head's module comment stays first, when it is one of the module and not of its first declaration
  let head = ""
  const first = clean[0].match(/^\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n\n/)
  if (first) {
    head = first[0]
    clean[0] = clean[0].slice(head.length)
  }
  out.set(
    d,
    bang +
      head +
      all.sort().join("\n") +
      (all.length ? "\n\n" : "") +
      (reexports.length ? reexports.map(fixCore).join("\n") + "\n\n" : "") +
      clean.join("\n\n") +
      "\n",
  )
}
// ---- write
const unchanged = (d, list) => list.length === 1 && list[0] === d && !modules.get(d).changed
for (const [f, d] of dest)
  if (!virtual.has(f) && f !== d) fs.rmSync(path.join(checkout, f), { force: true })
for (const [d, text] of out) {
  if (virtual.has(d)) continue
  const p = path.join(checkout, d)
  fs.mkdirSync(path.dirname(p), { recursive: true })
  fs.writeFileSync(p, text)
  written++
}
// code blocks, from the end of each file; those of sources by their text, since the file was merged
const blocks = new Map()
for (const [v, i] of virtual)
  (blocks.get(i.file) ?? blocks.set(i.file, []).get(i.file)).push([v, i])
for (const [file, list] of blocks) {
  const to = path.join(checkout, dest.get(file) ?? file)
  let t = fs.readFileSync(to, "utf8")
  const original = fs.existsSync(path.join(checkout, file)) && !dest.has(file) ? t : undefined
  for (const [v, i] of list.reverse()) {
    const m = modules.get(v)
    if (!m.changed && m.need.length === 0) continue
    // imports of a block stay where they were: before the body
    const code = out.get(v).replace(/\n+$/, "\n")
    if (code.trim() === i.code.trim()) continue
    const text = i.prefix
      ? code
          .replace(/\n$/, "")
          .split("\n")
          .map((l) => i.prefix.replace(/ $/, "") + (l ? " " + l : ""))
          .join("\n") + "\n"
      : code
    const old = i.prefix ? undefined : i.code
    if (original !== undefined) t = t.slice(0, i.start) + text + t.slice(i.end)
    else {
      const rawText = i.raw ?? fsRaw(i)
      const at = t.indexOf(rawText)
      if (at < 0) {
        note(`block of ${file} not found again`)
        continue
      }
      t = t.slice(0, at) + text + t.slice(at + rawText.length)
    }
  }
  fs.writeFileSync(to, t)
}
function fsRaw(i) {
  const t = sfOf(i.file).text
  return t.slice(i.start, i.end)
}
// ---- entry points of core
const isValue = new Map()
const entryFiles = {
  ".": "index.ts",
  effect: "effect.ts",
  store: "store.ts",
  adapter: "adapter.ts",
  transport: "transport.ts",
  internal: "internal.ts",
}
const put = new Map(Object.keys(entryFiles).map((s) => [s, new Map()]))
const expose = (s, k) => {
  const [file, name] = k.split("#")
  if (!put.has(s)) return
  const l = put.get(s)
  ;(l.get(file) ?? l.set(file, new Set()).get(file)).add(name)
}
for (const [f, d] of dest)
  if (d.startsWith("packages/core/src/") && f !== "packages/core/src/index.ts") {
    const m = checker.getSymbolAtLocation(sfOf(f))
    if (m)
      for (const e of checker.getExportsOfModule(m)) {
        const r = e.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(e) : e
        const i = declOf(r)
        if (!i || !dest.has(i.file)) continue
        const k = dest.get(i.file) + "#" + newName(i.file, r.escapedName.toString())
        isValue.set(k, (isValue.get(k) ?? false) || !!(r.flags & ts.SymbolFlags.Value))
      }
  }
for (const k of sub.extra) {
  const [s, name] = k.split("#")
  const found = [...isValue.keys()].filter((x) =>
    x.endsWith(name.includes("/") ? name.replace(":", "#") : "#" + name),
  )
  if (found.length !== 1) note(`extra ${k}: ${found.join(" ") || "not found"}`)
  for (const x of found) expose(s, x)
}
const docsOf = JSON.parse(fs.readFileSync(new URL("entry-docs.json", import.meta.url), "utf8"))
for (const [k] of usage) {
  const s = subpathOf(k)
  expose(s, k)
  if (rootSymbols.has(k.split("#")[1])) expose(".", k)
}
for (const [k] of isValue) if (rootSymbols.has(k.split("#")[1])) expose(".", k)
for (const [s, file] of Object.entries(entryFiles)) {
  const lines = ["/** " + docsOf[s] + " */", ""]
  for (const [from, ns] of [...put.get(s)].sort()) {
    const rel = "./" + from.replace("packages/core/src/", "")
    if (from.endsWith("base/setting.ts")) {
      lines.push(`export * as Setting from "${rel}"`)
      continue
    }
    const v = [...ns].filter((n) => n !== "*" && isValue.get(from + "#" + n)).sort(),
      t = [...ns].filter((n) => n !== "*" && !isValue.get(from + "#" + n)).sort()
    const all = [...v, ...t.map((x) => (v.length ? "type " + x : x))]
    if (all.length)
      lines.push(`export ${v.length ? "" : "type "}{ ${all.join(", ")} } from "${rel}"`)
  }
  fs.writeFileSync(path.join(checkout, "packages/core/src", file), lines.join("\n") + "\n")
  console.log(
    "entry",
    s,
    [...put.get(s).values()].reduce((n, x) => n + x.size, 0),
  )
}
// ---- report
console.log(shadows.join("\n"))
console.log(
  "files written",
  written,
  "problems",
  new Set(problems).size,
  "private renames",
  privateNames.size,
)
console.log([...new Set(problems)].slice(0, 80).join("\n"))
