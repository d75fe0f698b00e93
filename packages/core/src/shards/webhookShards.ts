/** The port `WebhookStore` over several shards. */

import type { WebhookStore } from "../webhooks/WebhookStore.ts"
import type { Routing, Shards } from "./Routing.ts"

/** Makes the store. */
export const make = ({ home }: Shards, { on }: Routing): WebhookStore["Service"] => ({
  ping: home.stores.memberships.ping,
  add: (webhook, ...rest) =>
    on(webhook.projectId, ({ webhooks }) => webhooks.add(webhook, ...rest)),
  list: (projectId) => on(projectId, ({ webhooks }) => webhooks.list(projectId)),
  find: (projectId, ...rest) => on(projectId, ({ webhooks }) => webhooks.find(projectId, ...rest)),
  rotateSecret: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.rotateSecret(projectId, ...rest)),
  addSigningKey: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.addSigningKey(projectId, ...rest)),
  enable: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.enable(projectId, ...rest)),
  remove: (projectId, ...rest) =>
    on(projectId, ({ webhooks }) => webhooks.remove(projectId, ...rest)),
})
