/** The program the adapter suite runs in Bun and Deno, and controls over HTTP. */

import { type Tenure, type TenureOptions, createTenure } from "@tenure/core"
import { fetchHandler } from "@tenure/fetch"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import type { Mount } from "@tenure/testing/conformance"
import { listen } from "./runtimes.ts"

/** A server started by the suite. */
interface Started {
  readonly tenure: Tenure
  readonly stop: () => Promise<void>
}

const started = new Map<number, Started>()

const start = async (options: TenureOptions, { isBehindParser, path }: Mount) => {
  const tenure = await createTenure({
    basePath: path,
    ...options,
    stores: memory(),
    transport: nodeTransport,
  })
  const api = fetchHandler(tenure)
  const own = async (request: Request, parsedBody: unknown): Promise<Response> => {
    const { pathname } = new URL(request.url)
    if (pathname === "/broken") throw new Error("the host's own")
    return pathname === "/own"
      ? Response.json(parsedBody ?? (await request.json()))
      : new Response(null, { status: 404 })
  }
  const { port, stop } = listen(async (request, remoteAddress) => {
    try {
      const isJson = request.headers.get("content-type") === "application/json"
      const parsedBody: unknown = isBehindParser && isJson ? await request.json() : undefined
      return (await api(request, { remoteAddress, parsedBody })) ?? (await own(request, parsedBody))
    } catch {
      return new Response(null, { status: 418 })
    }
  })
  started.set(port, { tenure, stop })
  return { port }
}

const call = async (
  port: number,
  service: string,
  method: string,
  args: ReadonlyArray<unknown>,
) => {
  const of: unknown = Reflect.get(started.get(port)?.tenure ?? {}, service)
  if (typeof of !== "object" || of === null) throw new TypeError(`no service ${service}`)
  return Reflect.get(of, method)(...args)
}

const close = async (port: number): Promise<void> => {
  const server = started.get(port)
  started.delete(port)
  await server?.stop()
  await server?.tenure.close()
}

const control = listen(async (request) => {
  const { args = [], method, mount, options, port, service } = JSON.parse(await request.text())
  const answer = async () => {
    if (mount !== undefined) return start(options, mount)
    return service === undefined ? close(port) : call(port, service, method, args)
  }
  return Response.json(
    await answer().then(
      (value: unknown) => ({ value }),
      (error: unknown) => ({ error: String(error) }),
    ),
  )
})

process.stdout.write(`http://127.0.0.1:${control.port}\n`)
