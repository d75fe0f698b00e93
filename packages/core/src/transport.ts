/** The port for sending webhooks, and its address policy. */

export {
  AddressPolicy,
  TransportError,
  WebhookTransport,
  bodyReader,
  hostOf,
  maxWebhookUrlLength,
  permitsHost,
  permitsUnchecked,
  type TransportRequest,
  type TransportResponse,
} from "./webhooks/transport.ts"
