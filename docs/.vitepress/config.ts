import { slug } from "github-slugger"
import { defineConfig } from "vitepress"
import * as markdownRules from "./src/markdown-rules.ts"
import { withOneButton } from "./src/one-button.ts"
import { pageOf } from "./src/pages.ts"
import { repository } from "./src/repository.ts"
import * as sidebar from "./src/sidebar.ts"

export default defineConfig({
  title: "Tenure",
  description: "Membership end dates in your backend.",
  lang: "en",
  // Without an icon of its own, browsers would ask for one that is not there.
  head: [["link", { rel: "icon", href: "data:," }]],
  srcDir: "..",
  srcExclude: ["**/CHANGELOG.md", "**/dist/**", "**/test/**", ".*/**", "README.md"],
  rewrites: (file) => pageOf(file) ?? file,
  cleanUrls: true,
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    anchor: { slugify: slug },
    config: markdownRules.apply,
    languageAlias: { haproxy: "nginx" },
  },
  vite: {
    publicDir: "docs/.vitepress/public",
    plugins: [
      {
        // Pages lie outside of this package, from where the server could not import it.
        name: "vue-of-the-site",
        enforce: "pre",
        resolveId: (id, _, { ssr = false }) =>
          ssr && /^vue(\/server-renderer)?$/.test(id)
            ? { id: import.meta.resolve(id), external: true }
            : undefined,
      },
      {
        // The title of a group is a button, and its arrow would be another one within it.
        name: "one-button-for-a-group",
        enforce: "pre",
        transform: (code, id) =>
          id.endsWith("/VPSidebarItem.vue") ? withOneButton(code) : undefined,
      },
      {
        // GitHub shows the blocks between these comments one after another.
        name: "tabs",
        enforce: "pre",
        transform: (code, id) => (id.endsWith(".md") ? markdownRules.withTabs(code) : undefined),
      },
      {
        name: "example-of-the-readme",
        enforce: "pre",
        transform: (code, id) =>
          id.endsWith("/docs/index.md")
            ? code.replace("<!-- the example of the README -->", markdownRules.example)
            : undefined,
      },
    ],
  },
  themeConfig: {
    search: {
      provider: "local",
      options: {
        miniSearch: {
          // Most of the reference repeats words that the guides explain.
          searchOptions: { boostDocument: (id) => (id.startsWith("/reference/") ? 0.2 : 1) },
        },
      },
    },
    outline: [2, 3],
    nav: [
      { text: "Guide", link: "/start" },
      { text: "Endpoints", link: "/reference/http" },
      { text: "Reference", link: "/reference/" },
      { text: "GitHub", link: repository },
    ],
    sidebar: { "/reference/": sidebar.reference(), "/": sidebar.guide() },
  },
})
