import "./style.css"
import type { Theme } from "vitepress"
import DefaultTheme from "vitepress/theme-without-fonts"
import { defineAsyncComponent } from "vue"

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => {
    // It has the library in it, so only its page loads it.
    app.component(
      "Playground",
      defineAsyncComponent(() => import("./playground.ts")),
    )
  },
} satisfies Theme
