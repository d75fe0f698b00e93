/** Writes texts for programs: a Markdown file beside each page, and their lists as in llmstxt.org. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { withoutTabs } from "./markdown-rules.ts"
import { isGenerated, linkOf, pageOf } from "./pages.ts"
import { repository, root } from "./repository.ts"
import { type Section, sections } from "./sidebar.ts"

const codeBlock = /(^ *```.*?^ *```$)/ms

/** Resolves a link in the Markdown files: to another Markdown file, or to the repository. */
const targetOf = (file: string, link: string): string => {
  const target = linkOf(file, link)
  if (!target.startsWith("/")) return target
  const [path = "", fragment] = target.split("#")
  const isFile = /\.\w+$/.test(path)
  const page = isFile ? path : `${path.endsWith("/") ? `${path}index` : path}.md`
  return fragment === undefined ? page : `${page}#${fragment}`
}

const picture = /<picture>.*?<img alt="([^"]*)" src="([^"]+)" \/>\s*<\/picture>/gs
const link = /(!?)\[((?:[^[\]]|!?\[[^\]]*\](?:\([^)]*\))?)*)\]\(([^)\s]+)\)/g

/** Rewrites a page's prose, and leaves its code. */
const plain = (file: string, prose: string): string =>
  prose
    .replaceAll(picture, "![$1]($2)")
    .replaceAll(/^<\/?(?:main|div)\b[^>]*>\n/gm, "")
    .replaceAll(link, (_, sign: string, text: string, to: string) => {
      const target = targetOf(file, to)
      return `${sign}[${text}](${sign === "" ? target : target.replace("/blob/", "/raw/")})`
    })

/** Returns a page's Markdown with the site's links. */
const textOf = (file: string): string =>
  withoutTabs(readFileSync(join(root, file), "utf8").replace(/^---\n.*?\n---\n/s, ""))
    .split(codeBlock)
    .map((part) => (codeBlock.test(part) ? part : plain(file, part)))
    .join("")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim()

/** The first sentence below the title, without links. */
const summaryOf = (text: string): string => {
  const paragraph = /^# .*\n\n(?![#|`!<-])(.+)$/m.exec(text)?.[1] ?? ""
  const sentence = /^.*?[.:](?= |$)/.exec(paragraph)?.[0] ?? paragraph
  return sentence.replaceAll(link, "$2").replace(/[.:]$/, "")
}

const listOf = ({ files, text }: Section): string => {
  const items = files.map((file) => {
    const content = textOf(file)
    const [, title = file] = /^# (.*)$/m.exec(content) ?? []
    const summary = summaryOf(content)
    return `- [${title.replaceAll("`", "")}](/${pageOf(file) ?? file})${summary === "" ? "" : `: ${summary}`}`
  })
  return `## ${text}\n\n${items.join("\n")}\n`
}

const heading = `# Tenure

> An embeddable TypeScript library for membership end dates: it extends memberships over HTTP, announces their ends, delivers signed webhooks and limits rates, in a backend that exists. The sources are at ${repository}.
`

/** Writes the files into the built site's folder. */
export const write = (folder: string): void => {
  const all = sections()
  const files = all.flatMap((section) => section.files)
  const texts = new Map(["docs/index.md", ...files].map((file) => [file, textOf(file)]))
  for (const [file, text] of texts) {
    const path = join(folder, pageOf(file) ?? file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, `${text}\n`)
  }
  const guides = files.filter((file) => !isGenerated(file)).map((file) => texts.get(file) ?? "")
  writeFileSync(join(folder, "llms.txt"), [heading, ...all.map(listOf)].join("\n"))
  writeFileSync(join(folder, "llms-full.txt"), `${[heading, ...guides].join("\n\n")}\n`)
}
