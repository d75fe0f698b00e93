/** The README's example, as a program that answers. */

import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { exampleOf } from "./repository.js"

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

const start = async (folder, node, port) => {
  const app = spawn(node, ["app.js"], {
    cwd: folder,
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  })
  for await (const line of createInterface(app.stdout)) {
    const [authorization] = /Bearer \S+/.exec(line) ?? []
    if (authorization !== undefined) return { app, authorization }
  }
  throw new Error("the app printed no token")
}

const callAll = async (url, authorization) => {
  const call = async (method, path, body) => {
    const response = await fetch(`${url}/v2/projects/p1${path}`, {
      method,
      headers: { authorization, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    })
    const answer = await response.json()
    if (response.status !== 200 || answer.ok !== true) {
      throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
    }
    return answer.data
  }
  const extend = Date.now() + 86_400_000
  await call("PATCH", "/memberships/1001/extend", { extend })
  await call("PATCH", "/memberships/extend", { extend })
  const { id } = await call("POST", "/integrations/webhooks", { url: "https://example.com/" })
  await call("GET", "/integrations/webhooks")
  await call("DELETE", `/integrations/webhooks/${id}`)
  const rest = await fetch(`${url}/`)
  if (rest.status !== 200) throw new Error(`the app's own route: ${rest.status}`)
}

/**
 * Pastes the README's example into a folder, starts it, and calls all five endpoints.
 *
 * @param folder - where the packages that it imports are installed
 * @param node - the Node to start it with
 */
export const tryExample = async (folder, node = process.execPath) => {
  writeFileSync(join(folder, "app.js"), exampleOf("README.md"))
  const port = await freePort()
  const { app, authorization } = await start(folder, node, port)
  try {
    await callAll(`http://127.0.0.1:${port}`, authorization)
  } finally {
    app.kill()
  }
}
