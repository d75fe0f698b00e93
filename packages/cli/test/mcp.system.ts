/** `tenure mcp` as a process: an agent starts it, it ends with the agent, and it says what is missing. */

import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { text as textOf } from "node:stream/consumers"
import { promisify } from "node:util"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { expect, it, onTestFinished } from "vitest"
import { bareEnvironment, command, commandFromSource } from "./programs.ts"
import { useServer } from "./server.ts"

const server = useServer()

it("serves an agent that starts the command, and ends with it", async () => {
  const [program = "", ...args] = command("mcp", "--write")
  const transport = new StdioClientTransport({
    command: program,
    args,
    env: { PATH: bareEnvironment.PATH ?? "", ...server.environment() },
  })
  const agent = new Client({ name: "test", version: "0" })
  await agent.connect(transport)
  const created = await agent.callTool({
    name: "projects_create",
    arguments: { project_id: "p", confirm: true },
  })
  expect(created).not.toHaveProperty("isError", true)
  const { content } = await agent.callTool({ name: "projects_list", arguments: {} })
  expect(JSON.stringify(content)).toContain("memberships")
  const { pid } = transport
  await agent.close()
  expect(() => process.kill(pid ?? 0, 0)).toThrow("ESRCH")
})

it("ends with an error when a message is too long", async () => {
  const [program = "", ...args] = command("mcp")
  const child = spawn(program, args, {
    env: { ...bareEnvironment, ...server.environment() },
  })
  onTestFinished(() => void child.kill("SIGKILL"))
  const stderr = textOf(child.stderr)
  const closed = once(child, "close")
  // The command ends before it has read all of it.
  child.stdin.on("error", () => {})
  child.stdin.write("x".repeat(11 * 1024 * 1024))
  expect(await closed).toEqual([1, null])
  expect(await stderr).toContain("more than 10 MiB")
})

/** Lets a process find no package of the SDK. */
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
  const [, ...rest] = commandFromSource("mcp")
  const hooks = `data:text/javascript,${encodeURIComponent(withoutSdk)}`
  const env = { ...bareEnvironment, ...server.environment() }
  const failed = promisify(execFile)(process.execPath, ["--import", hooks, ...rest], { env })
  await expect(failed).rejects.toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("npm install @modelcontextprotocol/sdk"),
  })
})
