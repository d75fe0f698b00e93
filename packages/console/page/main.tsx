/** The page. */

import { render } from "preact"
import { App } from "./app.tsx"
import { apply, chosen, install } from "./parts/environment.tsx"

install()
apply(chosen())
render(<App />, document.body)
