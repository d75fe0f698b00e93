import { slug } from "github-slugger"
import { defineConfig } from "vitepress"
import { noticesOf } from "../../scripts/notices.ts"
import * as markdownRules from "./src/markdown-rules.ts"
import { withOneButton } from "./src/one-button.ts"
import { isGenerated, pageOf } from "./src/pages.ts"
import { repository } from "./src/repository.ts"
import * as search from "./src/search.ts"
import * as sidebar from "./src/sidebar.ts"
import * as texts from "./src/texts.ts"

export default defineConfig({
  title: "Tenure",
  description: "Membership end dates in your backend.",
  lang: "en",
  // Without a declared icon, browsers would request a missing one.
  head: [["link", { rel: "icon", href: "data:," }]],
  srcDir: "..",
  srcExclude: [
    "**/CHANGELOG.md",
    "{packages,examples}/*/*/**",
    "**/dist/**",
    "**/test/**",
    ".*/**",
    "README.md",
  ],
  rewrites: (file) => pageOf(file) ?? file,
  cleanUrls: true,
  ignoreDeadLinks: "localhostLinks",
  lastUpdated: true,
  transformPageData: (page) => {
    // The reference is made from the code.
    if (isGenerated(page.filePath))
      Object.assign(page.frontmatter, { editLink: false, lastUpdated: false })
    page.frontmatter["head"] = [
      ["link", { rel: "alternate", type: "text/markdown", href: `/${page.relativePath}` }],
    ]
  },
  buildEnd: ({ outDir }) => texts.write(outDir),
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    anchor: { slugify: slug },
    config: markdownRules.apply,
    languageAlias: { haproxy: "nginx" },
  },
  vite: {
    // The playground has the library from its sources.
    resolve: { conditions: ["@tenure/source"] },
    publicDir: "docs/.vitepress/public",
    plugins: [
      {
        // Pages are outside this package, where the server could not import it.
        name: "vue-of-the-site",
        enforce: "pre",
        resolveId: (id, _, { ssr = false }) =>
          ssr && /^vue(\/server-renderer)?$/.test(id)
            ? { id: import.meta.resolve(id), external: true }
            : undefined,
      },
      {
        name: "licences",
        apply: (_, { isSsrBuild = false }) => !isSsrBuild,
        async generateBundle(_, bundle) {
          const modules = Object.values(bundle).flatMap((file) =>
            file.type === "chunk" ? Object.entries(file.modules) : [],
          )
          const source = await noticesOf(
            modules.flatMap(([id, { renderedLength }]) => (renderedLength > 0 ? [id] : [])),
          )
          this.emitFile({ type: "asset", fileName: "NOTICES.txt", source })
        },
      },
      {
        // A group's title is a button, and its arrow would be a nested one.
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
    ],
  },
  themeConfig: {
    search: {
      provider: "local",
      options: {
        _render: (source, env, renderer) =>
          search.textOf(env.relativePath, renderer.render(source, env)),
        miniSearch: search.options,
      },
    },
    editLink: { pattern: `${repository}/edit/main/:path`, text: "Edit this page" },
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
