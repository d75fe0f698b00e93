/** `tenure mcp` as a process: an agent starts it, it ends with the agent, and it says what is missing. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { expect, it } from "vitest"
import { refused } from "./in-process.ts"
import { bareEnvironment, command, commandFromSource, run, startCommand } from "./programs.ts"
import { useServer } from "./server.ts"

const server = useServer()

it("serves an agent that starts the command, and ends with it", async () => {
  const [program = "", ...args] = command("mcp", "--write")
  const env = { PATH: bareEnvironment.PATH ?? "", ...server.environment() }
  const transport = new StdioClientTransport({ command: program, args, env })
  const agent = new Client({ name: "test", version: "0" })
  await agent.connect(transport)
  const input = { project_id: "p", confirm: true }
  const created = await agent.callTool({ name: "projects_create", arguments: input })
  expect(created).not.toHaveProperty("isError", true)
  const { content } = await agent.callTool({ name: "projects_list", arguments: {} })
  expect(JSON.stringify(content)).toContain("memberships")
  const { pid } = transport
  await agent.close()
  expect(() => process.kill(pid ?? 0, 0)).toThrow("ESRCH")
})

it("ends with an error when a message is too long", async () => {
  const { child, ended } = startCommand(server.environment(), "mcp")
  // The command ends before it has read everything.
  child.stdin.on("error", () => {})
  child.stdin.write("x".repeat(11 * 1024 * 1024))
  expect(await ended).toMatchObject(refused(1, "more than 10 MiB"))
})

/** Lets a process find no SDK package. */
const withoutSdk = `
  import { registerHooks } from "node:module"
  registerHooks({
    resolve(name, context, next) {
      if (!name.startsWith("@modelcontextprotocol/")) return next(name, context)
      throw Object.assign(new Error(name), { code: "ERR_MODULE_NOT_FOUND" })
    },
  })
`

it("says what to install where the SDK is missing", async () => {
  // The bundle has the SDK in it.
  const [program = "", ...rest] = commandFromSource("mcp")
  const hooks = `data:text/javascript,${encodeURIComponent(withoutSdk)}`
  const ended = await run([program, "--import", hooks, ...rest], { env: server.environment() })
  const told = "npm install @modelcontextprotocol/sdk"
  expect(ended).toMatchObject({ ...refused(2, told), stdout: "" })
})
