/** The documentation's statements that create two roles: an owner, and one that owns nothing. */

import { readFile } from "node:fs/promises"

/**
 * Returns the page's statements, block by block.
 *
 * @param name - what to call the schema, and what the roles' names begin with
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
