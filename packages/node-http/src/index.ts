/** Tenure on node:http: a request listener, a server, and a transport for webhooks. */
export {
  handle,
  type HandlerOptions,
  type Known,
  type NodeHandler,
  send,
  toNodeHandler,
} from "./handler.ts"
export { serve, type Server, type ServerOptions } from "./server.ts"
export { nodeTransport } from "./transport.ts"
export { type Verified, verifyWebhook, type VerifyOptions } from "./verifyWebhook.ts"
