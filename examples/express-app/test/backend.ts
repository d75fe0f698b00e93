/** Starts the backend as its operator does, and sends it requests. */

import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

const { NODE_COMPILE_CACHE } = process.env

const clientOf = (url: string) => {
  /** Sends a request. Returns the response, its status, and its body, parsed if it is JSON. */
  const send = async (method: string, path: string, cookie = "", body?: object) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { cookie, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    })
    const text = await response.text()
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
    return { response, status: response.status, body: isJson ? JSON.parse(text) : text }
  }
  /** Logs in. Returns the cookie, or an empty string if the password is wrong. */
  const logIn = async (name: string, password: string): Promise<string> => {
    const { response } = await send("POST", "/login", "", { name, password })
    return response.headers.getSetCookie()[0]?.split(";")[0] ?? ""
  }
  return { send, logIn }
}

/** Starts the backend on a free port. Returns its client, and a function that ends it and returns the exit code. */
export const startBackend = async (environment: Readonly<Record<string, string>> = {}) => {
  const child = spawn(process.execPath, ["-C", "@tenure/source", main], {
    env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE, PORT: "0", ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  const port = await new Promise<number>((resolve, reject) => {
    createInterface(child.stdout).on("line", (line) => {
      const { address, message } = JSON.parse(line)
      if (message === "listening") resolve(address.port)
    })
    void ended.then((code) => reject(new Error(`the backend exited with code ${code}`)))
  })
  const stop = () => {
    child.kill("SIGTERM")
    return ended
  }
  return { ...clientOf(`http://127.0.0.1:${port}`), stop }
}
