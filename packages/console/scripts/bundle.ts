/** Bundles the page, as the package contains it. */

import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { noticesOf } from "../../../scripts/notices.ts"
import { slim } from "./slim.ts"

const pathOf = (name: string): string => fileURLToPath(new URL(`../page/${name}`, import.meta.url))

const licence =
  "/* Contains Preact, (c) 2015-present Jason Miller, and a part of uPlot, (c) 2022 Leon Sorokin, both under the MIT licence: see NOTICES.txt of the console. */"

/** Bundles and minifies a file, and returns its source files. */
const bundle = async (name: string) => {
  const { metafile, outputFiles } = await build({
    entryPoints: [pathOf(name)],
    bundle: true,
    write: false,
    metafile: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    conditions: ["@tenure/source"],
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "error",
    plugins: [slim],
  })
  const text = outputFiles.map((file) => file.text.trim()).join("")
  return { text, sources: Object.keys(metafile.inputs) }
}

const versionOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 12)

const fileOf = (type: string, text: string) => ({ type, version: versionOf(text), text })

/** Makes the page, its files, which the page links by version, and the licences for bundled code. */
export const makeFiles = async () => {
  const [script, style, icon, html] = await Promise.all([
    bundle("main.tsx"),
    bundle("style.css"),
    readFile(pathOf("icon.svg"), "utf8"),
    readFile(pathOf("index.html"), "utf8"),
  ])
  const files = {
    "app.js": fileOf("text/javascript; charset=utf-8", `${licence}\n${script.text}`),
    "style.css": fileOf("text/css; charset=utf-8", style.text),
    "icon.svg": fileOf("image/svg+xml", icon.trim()),
  }
  const page = Object.entries(files).reduce(
    (text, [name, { version }]) => text.replace(`"${name}"`, `"${name}?${version}"`),
    html,
  )
  return { files, html: page, notices: await noticesOf(script.sources) }
}
