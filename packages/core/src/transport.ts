/** The port that sends webhooks, and the address policy that it applies. */

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
