/** Paths for the site's sources. */

import { fileURLToPath } from "node:url"

/** The repository's folder, without a slash at the end. */
export const root = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "")

/** The public repository. */
export const repository = "https://github.com/tenure/tenure"

/** The site's folder. */
export const site = `${root}/docs/.vitepress`

/** The folder for pages generated from the code. */
export const reference = `${root}/docs/reference`
