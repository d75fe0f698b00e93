// Entry points, configuration, prose and pages, after rename.mjs.
// usage: node finish.mjs CHECKOUT NAMES
import fs from "node:fs"
import path from "node:path"
const root = process.argv[2]
const at = (...p) => path.join(root, ...p)
const json = (f, change) => {
  const m = JSON.parse(fs.readFileSync(at(f), "utf8"))
  change(m)
  fs.writeFileSync(at(f), JSON.stringify(m, null, 2) + "\n")
}
const exp = (m) =>
  Object.fromEntries(
    Object.entries(m).map(([k, f]) => [
      k,
      { "@tenure/source": `./src/${f}.ts`, types: `./dist/${f}.d.ts`, default: `./dist/${f}.js` },
    ]),
  )
const keepJson = (m) =>
  Object.fromEntries(
    Object.entries(m.exports).filter(([, v]) => v === null || typeof v === "string"),
  )
json("packages/core/package.json", (m) => {
  const k = keepJson(m)
  m.exports = {
    ...exp({
      ".": "index",
      "./adapter": "adapter",
      "./effect": "effect",
      "./http-router": "http/http-router",
      "./internal": "internal",
      "./openapi": "openapi",
      "./signature": "webhooks/signature",
      "./store": "store",
      "./transport": "transport",
    }),
    ...k,
  }
})
json("packages/postgres/package.json", (m) => {
  const k = keepJson(m)
  m.exports = {
    ...exp({
      ".": "index",
      "./ops/program": "ops/program",
      "./ops/upkeep": "ops/upkeep",
      "./within": "within",
    }),
    ...k,
  }
})
json("packages/testing/package.json", (m) => {
  const k = keepJson(m)
  m.exports = { ...exp({ ".": "index", "./postgres-server": "support/postgres-server" }), ...k }
})
fs.writeFileSync(
  at("packages/core/src/openapi.ts"),
  `/** The documents of the API: OpenAPI and AsyncAPI. */\n\nexport { printAsyncApi } from "./openapi/asyncapi.ts"\nexport { document } from "./http/docs/document.ts"\nexport { openApi } from "./openapi/document.ts"\nexport type { JsonReference, JsonSchema, OpenApiContent, OpenApiDocument, OpenApiOperation, OpenApiParameter, OpenApiResponse } from "./openapi/types.ts"\n`,
)
// tenure
for (const f of fs.readdirSync(at("packages/tenure/src")))
  if (f !== "bin") fs.rmSync(at("packages/tenure/src", f), { recursive: true })
const lines = {
  index: "@tenure/core",
  effect: "@tenure/core/effect",
  store: "@tenure/core/store",
  adapter: "@tenure/core/adapter",
  transport: "@tenure/core/transport",
  signature: "@tenure/core/signature",
  "http-router": "@tenure/core/http-router",
  openapi: "@tenure/core/openapi",
  memory: "@tenure/memory",
  postgres: "@tenure/postgres",
  within: "@tenure/postgres/within",
  embedded: "@tenure/embedded",
  redis: "@tenure/redis",
  node: "@tenure/node-http",
  express: "@tenure/express",
  fastify: "@tenure/fastify",
  fetch: "@tenure/fetch",
  client: "@tenure/client",
  console: "@tenure/console",
  testing: "@tenure/testing",
}
for (const [f, spec] of Object.entries(lines))
  fs.writeFileSync(
    at("packages/tenure/src", f + ".ts"),
    `export * from "${spec}"\n` +
      (f === "testing" ? `export * from "@tenure/testing/postgres-server"\n` : ""),
  )
for (const f of ["express", "worker"]) {
  const p = at("packages/benchmark/src/weight", f + ".ts")
  fs.writeFileSync(
    p,
    fs
      .readFileSync(p, "utf8")
      .replace(
        /export \* as \w+ from "@tenure\/core[^"]*"/,
        'export { createTenure } from "@tenure/core"',
      ),
  )
}
{
  const p = at("packages/benchmark/src/weight/tenure.ts")
  fs.writeFileSync(
    p,
    fs
      .readFileSync(p, "utf8")
      .replace(
        /export \{ (type )?Tenure \} from "tenure"/,
        'export { createTenure } from "tenure"',
      ),
  )
}
const sub = (f, ...pairs) => {
  const p = at(f)
  if (!fs.existsSync(p)) return console.log("no file", f)
  let t = fs.readFileSync(p, "utf8")
  for (const [a, b] of pairs) {
    const hit = a instanceof RegExp ? a.test(t) : t.includes(a)
    if (!hit) console.log("not found in", f, String(a))
    t = a instanceof RegExp ? t.replace(a, b) : t.replaceAll(a, () => b)
  }
  fs.writeFileSync(p, t)
}
sub(
  ".ci/image.js",
  ["support/freePort.ts", "support/free-port.ts"],
  ["support/postgres/PostgresServer.ts", "support/postgres-server.ts"],
)
sub(".knip.json", ["src/support/postgres/watchdog.ts", "src/support/postgres-watchdog.ts"])
sub(
  ".size-limit.js",
  ["*/docs/Html.ts", "*/openapi/html.ts"],
  ["*/docs/AsyncApi.ts", "*/openapi/asyncapi.ts"],
  ["*/Metering.ts", "*/metering.ts"],
  ["*/Spans.ts", "*/spans.ts"],
  ["*/OpenTelemetry.ts", "*/open-telemetry.ts"],
  ["*/Realtime.ts", "*/http/realtime.ts"],
  ["*/Sweeper.ts", "*/expiry-sweeper.ts"],
)
sub(".stryker.config.js", [
  /mutate: \[[^\]]*\]/,
  `mutate: [
    "packages/core/src/base/time.ts",
    "packages/core/src/http/operation.ts",
    "packages/core/src/limits/buckets.ts",
    "packages/core/src/limits/rate-limiter.ts",
    "packages/core/src/memberships/end-date.ts",
    "packages/core/src/webhooks/transport.ts",
    "packages/core/src/webhooks/signature.ts",
  ]`,
])
sub("packages/core/rolldown.config.js", [
  "src/webhooks/WebhookSignature.ts",
  "src/webhooks/signature.ts",
])
sub("packages/benchmark/src/sections/start.ts", ["@tenure/core/Tenure", "@tenure/core"])
sub(
  "docs/hosts/test/program.ts",
  ['import * as Tenure from "@tenure/core/Tenure"', 'import { createTenure } from "@tenure/core"'],
  ["Tenure.make(", "createTenure("],
)
sub("docs/hosts/test/remote.ts", ['"@tenure/core/Tenure"', '"@tenure/core"'])
sub(
  "docs/test/options.ts",
  ["core/src/**/!(HttpRoutes|Flush).ts", "core/src/**/!(http-router).ts"],
  ["`Tenure.make` of `tenure`", "`createTenure` of `tenure`"],
  ["`Tenure.layer`, for Effect hosts", "`tenureLayer` of `tenure/effect`"],
  ["core/src/webhooks/Flush.ts", "core/src/webhooks/dispatcher.ts"],
  ["core/src/shards/Shards.ts", "core/src/shards/shards.ts"],
  ["console/src/console.ts", "console/src/index.ts"],
  ["core/src/http/HttpRoutes.ts", "core/src/http/http-router.ts"],
  ["`HttpRoutes.layer` of `tenure`", "`tenureRouterLayer` of `tenure/http-router`"],
)
sub(
  "packages/fetch/test/bundle.test.ts",
  ["packages/core/src/http/Handler.ts", "packages/core/src/http/handler.ts"],
  ["@tenure/core/Tenure", "@tenure/core"],
)
sub("packages/core/test/base/Version.test.ts", [
  "../../src/base/Version.ts",
  "../../src/base/version.ts",
])
sub("package.json", ["core base/Version", "core base/Version"])
sub(
  "packages/cli/src/commands/doctor.ts",
  ['typeof import("./database-upkeep.ts")', "typeof Upkeep"],
  [/^import /m, 'import type * as Upkeep from "./database-upkeep.ts"\nimport '],
)
// tenure: no generator
for (const f of ["packages/tenure/test/exports.test.ts", "packages/tenure/test/modules.ts"])
  fs.rmSync(at(f), { force: true })
fs.rmSync(at("packages/core/src/base/Version.ts"), { force: true })
// names in prose
const tsv = fs
  .readFileSync(process.argv[3], "utf8")
  .trim()
  .split("\n")
  .slice(1)
  .map((l) => l.split("\t"))
const map = new Map()
for (const [o, n] of tsv) {
  const m = /^core\/(?:[\w]+\/)*(\w+)#(\w+)$/.exec(o)
  if (m && /^\w+$/.test(n.split(" ")[0]) && n !== "unchanged")
    map.set(`${m[1]}.${m[2]}`, n.split(" ")[0])
}
for (const [a, b] of [["Tenure.Tenure", "Tenure"]]) map.set(a, b)
const files = []
const walk = (d) => {
  for (const e of fs.readdirSync(d, { withFileTypes: true })) {
    if (
      ["node_modules", "dist", ".git", ".changeset"].includes(e.name) ||
      e.name === "CHANGELOG.md"
    )
      continue
    const p = path.join(d, e.name)
    if (e.isDirectory()) walk(p)
    else if (/\.(md|tsx?)$/.test(e.name)) files.push(p)
  }
}
for (const d of ["docs", "packages", "examples"]) walk(at(d))
files.push(at("README.md"), at("SECURITY.md"), at("CONTRIBUTING.md"))
let n = 0
for (const f of files) {
  const t = fs.readFileSync(f, "utf8")
  const isMd = f.endsWith(".md")
  const u = t.replace(/\b([A-Z]\w+)\.(\w+)\b/g, (x, a, b, i) => {
    const to = map.get(x)
    if (!to || (!isMd && !/^(Tenure|HttpRoutes|Handler)$/.test(a) && !inComment(t, i))) return x
    n++
    return to
  })
  if (u !== t) fs.writeFileSync(f, u)
}
function inComment(t, i) {
  const line = t.slice(t.lastIndexOf("\n", i) + 1, i)
  return /^\s*(\*|\/\/|\/\*\*)/.test(line)
}
console.log("names in prose", n)
fs.cpSync(new URL("overlay", import.meta.url), root, { recursive: true })
