/** The page. */

import { render } from "preact"
import { App } from "./app.tsx"
import * as Scheme from "./parts/scheme.tsx"
import * as Visible from "./parts/visible.ts"

Visible.install()
Scheme.apply(Scheme.chosen())
render(<App />, document.body)
