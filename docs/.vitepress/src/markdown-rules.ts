/** Markdown rules for pages also shown on GitHub. */

import { relative } from "node:path"
import type { MarkdownRenderer } from "vitepress"
import { linkOf } from "./pages.ts"
import { root } from "./repository.ts"

const picture = /<picture>(.*?)<img alt="([^"]*)" src="([^"]+)" \/>\s*<\/picture>/gs
const source = /<source media="([^"]+)" srcset="([^"]+)" \/>/g
const isDark = /\(prefers-color-scheme: dark\)(?: and )?/

interface Source {
  /** Empty for all windows. */
  readonly media: string
  readonly path: string
}

const pictureOf = (name: string, alt: string, sources: ReadonlyArray<Source>): string => {
  const content = sources.map(({ media, path }) =>
    media === ""
      ? `<img alt="${alt}" src="./${path}" loading="lazy">`
      : `<source media="${media}" srcset="./${path}">`,
  )
  return `<picture class="${name}">${content.join("")}</picture>`
}

/** Lets the site's theme switch choose between two pictures, not the system alone. */
const withSwitch = (html: string): string =>
  html.replaceAll(picture, (_, sources: string, alt: string, path: string) => {
    const all = [...sources.matchAll(source)].map(([, media = "", file = ""]) => ({
      media,
      path: file,
    }))
    const light = all.filter(({ media }) => !isDark.test(media))
    const dark = all
      .filter(({ media }) => isDark.test(media))
      .map((one) => ({ ...one, media: one.media.replace(isDark, "") }))
    return `${pictureOf("only-dark", alt, dark)}${pictureOf("only-light", alt, [...light, { media: "", path }])}`
  })

/** Adds the rules. */
export const apply = (renderer: MarkdownRenderer): void => {
  renderer.core.ruler.push("repository", ({ env, tokens }) => {
    const file = relative(root, env.realPath ?? env.path)
    for (const token of tokens) {
      if (token.type === "html_block") token.content = withSwitch(token.content)
      for (const child of token.children ?? []) {
        const href = child.type === "link_open" ? child.attrGet("href") : null
        if (href !== null) child.attrSet("href", linkOf(file, href))
      }
    }
  })
}

/** Puts the code blocks between two comments into tabs. */
export const withTabs = (markdown: string): string =>
  markdown.replaceAll("<!-- tabs -->", "::: code-group").replaceAll("<!-- /tabs -->", ":::")

/** Removes the comments around tabs. */
export const withoutTabs = (markdown: string): string =>
  markdown.replaceAll(/^<!-- \/?tabs -->\n/gm, "")
