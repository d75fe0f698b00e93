/**
 * A newcomer's path: packs what is built, installs it in an empty folder beside Express, pastes the
 * README's example, and calls all five endpoints.
 */

import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "newcomer-"))

const run = (cwd, command, ...args) =>
  execFileSync(command, args, { cwd, stdio: ["ignore", "ignore", "inherit"] })

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

const install = () => {
  run(root, "npm", "run", "tarballs", "--", folder)
  const tarballs = readdirSync(folder).filter((file) =>
    /^tenure-(core|memory|node-http|express)-/.test(file),
  )
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  const quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
  run(folder, "npm", "install", ...quietly, "effect", "express", ...tarballs)
}

const paste = () => {
  const [, example] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(`${root}/README.md`, "utf8"))
  writeFileSync(join(folder, "app.js"), example)
}

const start = async (port) => {
  const app = spawn(process.execPath, ["app.js"], {
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

try {
  install()
  paste()
  const port = await freePort()
  const { app, authorization } = await start(port)
  try {
    await callAll(`http://127.0.0.1:${port}`, authorization)
  } finally {
    app.kill()
  }
} finally {
  rmSync(folder, { recursive: true })
}
