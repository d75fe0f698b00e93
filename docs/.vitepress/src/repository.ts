/** Where the sources of the site are. */

import { fileURLToPath } from "node:url"

/** The folder of the repository, without a slash at the end. */
export const root = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "")

/** Where the repository is published. */
export const repository = "https://github.com/tenure/tenure"

/** The folder of the site. */
export const site = `${root}/docs/.vitepress`

/** The folder of the pages that are made from the code. */
export const reference = `${root}/docs/reference`
