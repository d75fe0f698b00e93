/** How the site reads Markdown that is also read on GitHub. */

import { relative } from "node:path"
import type { MarkdownRenderer } from "vitepress"
import { linkOf } from "./pages.ts"
import { root } from "./repository.ts"

const picture =
  /<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)" \/>\s*<img alt="([^"]*)" src="([^"]+)" \/>\s*<\/picture>/g

/** Has the switch of the site choose between two images, not the system alone. */
const withSwitch = (html: string): string =>
  html.replaceAll(
    picture,
    '<img class="only-dark" alt="$2" src="./$1" loading="lazy"><img class="only-light" alt="$2" src="./$3" loading="lazy">',
  )

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
