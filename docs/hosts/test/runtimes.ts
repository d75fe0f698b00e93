/** How runtimes without a framework listen: Bun and Deno. */

/** Answers a request from a client's address. */
export type Answer = (request: Request, remoteAddress: string | undefined) => Promise<Response>

/** A listening server. */
export interface Listening {
  readonly port: number
  readonly stop: () => Promise<void>
}

/** The Bun API used here. */
interface BunServer {
  readonly port: number
  readonly requestIP: (request: Request) => { readonly address: string } | null
  readonly stop: (closeActiveConnections: boolean) => Promise<void>
}

declare const Bun: {
  readonly serve: (options: {
    readonly port: number
    readonly hostname: string
    readonly fetch: (request: Request, server: BunServer) => Promise<Response>
  }) => BunServer
}

/** The Deno API used here. */
declare const Deno: {
  readonly serve: (
    options: { readonly port: number; readonly hostname: string; readonly onListen: () => void },
    handler: (
      request: Request,
      info: { readonly remoteAddr: { readonly hostname: string } },
    ) => Promise<Response>,
  ) => { readonly addr: { readonly port: number }; readonly shutdown: () => Promise<void> }
}

const any = { port: 0, hostname: "127.0.0.1" }

const onBun = (answer: Answer): Listening => {
  const server = Bun.serve({
    ...any,
    fetch: (request, self) => answer(request, self.requestIP(request)?.address),
  })
  return { port: server.port, stop: () => server.stop(true) }
}

const onDeno = (answer: Answer): Listening => {
  const server = Deno.serve({ ...any, onListen: () => {} }, (request, info) =>
    answer(request, info.remoteAddr.hostname),
  )
  return { port: server.addr.port, stop: server.shutdown }
}

/** Listens on a free loopback port. */
export const listen: (answer: Answer) => Listening = "Bun" in globalThis ? onBun : onDeno
