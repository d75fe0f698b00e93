/** The command `init`: the programs that it writes have no type errors, are started, and answer. */

import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { extend, folderWith, run, start, writeServer } from "./programs.ts"

const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url))

const compilerOptions = {
  target: "es2023",
  module: "nodenext",
  types: ["node"],
  customConditions: ["@tenure/source"],
  rewriteRelativeImportExtensions: true,
  experimentalDecorators: true,
  strict: true,
  skipLibCheck: true,
}

const expectToServe = async (folder: string, file: string): Promise<void> => {
  const { token, url } = await start(folder, file)
  expect(await (await fetch(extend(url, token))).json()).toMatchObject({ ok: true })
}

it.each([
  { host: "Express", dependencies: { express: "*" } },
  { host: "Fastify", dependencies: { fastify: "*" } },
  { host: "Hono", dependencies: { hono: "*", "@hono/node-server": "*" } },
  { host: "node:http", dependencies: {} },
])("in a program with $host, tenure.js answers", async ({ dependencies, host }) => {
  const folder = folderWith({ "package.json": { type: "module", dependencies } })
  expect(await writeServer(folder)).toContain(`Wrote tenure.js, which serves Tenure with ${host}.`)
  await expectToServe(folder, "tenure.js")
})

it("in a package of CommonJS, tenure.mjs answers", async () => {
  const folder = folderWith({ "package.json": { type: "commonjs" } })
  expect(await writeServer(folder)).toContain("Wrote tenure.mjs, ")
  await expectToServe(folder, "tenure.mjs")
})

const appModule = `
  import { Controller, Get, Module } from "@nestjs/common"
  @Controller()
  class Rest {
    @Get() answer() { return "the rest of your backend" }
  }
  @Module({ controllers: [Rest] })
  export class AppModule {}
`

// The compiler reads all Tenure, so it runs once.
it("in programs in TypeScript, what is written has no type errors, and answers", async () => {
  const folder = folderWith({
    "package.json": {},
    "tsconfig.json": { compilerOptions: { ...compilerOptions, rootDir: ".", outDir: "dist" } },
    "module/package.json": { type: "module", dependencies: { express: "*" } },
    "module/tsconfig.json": {},
    "commonjs/package.json": { type: "commonjs", dependencies: { express: "*" } },
    "commonjs/tsconfig.json": {},
    "nest/package.json": { dependencies: { "@nestjs/core": "*", "@nestjs/platform-express": "*" } },
    "nest/tsconfig.json": {},
    "nest/src/app.module.ts": appModule,
  })
  expect(await writeServer(join(folder, "module"))).toContain("Wrote tenure.ts, ")
  expect(await writeServer(join(folder, "commonjs"))).toContain("Wrote tenure.mts, ")
  const printed = await writeServer(join(folder, "nest"))
  expect(printed).toContain("Wrote src/tenure.mts, ")
  expect(printed).toContain("node dist/tenure.mjs ")
  const compiled = await run([process.execPath, tsc], { cwd: folder })
  expect(compiled).toEqual({ code: 0, stdout: "", stderr: "" })
  await Promise.all(
    ["module/tenure.ts", "commonjs/tenure.mts", "dist/nest/src/tenure.mjs"].map((file) =>
      expectToServe(folder, file),
    ),
  )
})
