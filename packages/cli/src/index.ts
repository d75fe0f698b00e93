/** The command `tenure`. */

import { readFileSync } from "node:fs"
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner"
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem"
import * as NodePath from "@effect/platform-node-shared/NodePath"
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import * as NodeStdio from "@effect/platform-node-shared/NodeStdio"
import * as NodeTerminal from "@effect/platform-node-shared/NodeTerminal"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { tenure } from "./command.ts"

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
)

const services = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, NodeStdio.layer, NodeTerminal.layer),
  ),
)

/**
 * Runs the command with the arguments of the process, whose exit code is 1 if it fails.
 *
 * @example
 * ```ts
 * import { main } from "@tenure/cli"
 *
 * main()
 * ```
 */
export const main = (): void =>
  NodeRuntime.runMain(
    Command.run(tenure, { version: manifest.version }).pipe(Effect.provide(services)),
  )
