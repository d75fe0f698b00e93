/** Tenure on node:http: a request handler, a server, and a transport for webhooks. */
export { handle, type Known } from "./answer.ts"
export { type HandlerOptions, handlerOptions, type NodeHandler, toNodeHandler } from "./handler.ts"
export type { NodeRequest, NodeResponse } from "./messages.ts"
export { type OrderOptions, orderOptions, orderRequests } from "./pipelines.ts"
export { send } from "./send.ts"
export { serve, type Server, type ServerOptions, serverOptions } from "./server.ts"
export { nodeTransport } from "./transport.ts"
export { type Verified, verifyWebhook, type VerifyOptions, verifyOptions } from "./verifyWebhook.ts"
