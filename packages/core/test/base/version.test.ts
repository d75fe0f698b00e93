import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

const { version } = JSON.parse(readFileSync(pathOf("../../package.json"), "utf8"))

it("the version is that of the package", async () => {
  const text = `/** The version of Tenure, as the package has it: \`npm run release:version\` writes this module. */
export const version = ${JSON.stringify(version)}
`
  await expect(text).toMatchFileSnapshot(pathOf("../../src/base/version.ts"))
})
