/** The statements of the documentation that create the roles, one of which owns nothing. */

import { readFile } from "node:fs/promises"

/**
 * Returns the statements of each block of the page.
 *
 * @param name - what to call the schema, and what the names of the roles begin with
 */
export const documentedRoles = async (
  name = "tenure",
): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  const page = await readFile(new URL("../../../docs/storage.md", import.meta.url), "utf8")
  const [, section = ""] = page.split("## A role that owns nothing\n")
  return [...section.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, block = ""]) =>
    block
      .replaceAll(/\btenure/g, name)
      .split(";\n")
      .filter((statement) => statement.trim() !== ""),
  )
}
