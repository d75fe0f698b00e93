/** Stores whose audit trail is wrong. */

import { ApiKeyStore, MembershipStore, WebhookStore, hostOrigin } from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

/** Stores whose audit trail is wrong. */
export const auditing = [
  ...mutantsOf(MembershipStore, {
    "has the rows of webhooks in no project": ({ history }) => ({
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows.map((row) => (row.subject === undefined ? row : { ...row, projectId: undefined })),
        ),
    }),

    "forgets what was changed": ({ history }) => ({
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows.map((row) => ({ ...row, subject: undefined })),
        ),
    }),

    "forgets the names of keys": ({ history }) => ({
      history: (projectId, page) =>
        Effect.map(history(projectId, page), (rows) =>
          rows.map((row) => ({ ...row, keyName: undefined })),
        ),
    }),

    "forgets who was shown something": ({ recordShown }) => ({
      recordShown: (projectId, shown, { at }) =>
        recordShown(projectId, shown, { at, origin: hostOrigin }),
    }),

    "takes data that was shown to be a secret": ({ recordShown }) => ({
      recordShown: (projectId, { subject }, occasion) =>
        recordShown(projectId, { action: "secret_shown", subject }, occasion),
    }),

    "records what is shown of no project": ({ recordShown }) => ({
      recordShown: (...shown) => Effect.ignore(recordShown(...shown)),
    }),

    "keeps no rows of keys and projects": ({ history }) => ({
      history: (projectId, page) =>
        projectId === undefined ? Effect.succeed([]) : history(projectId, page),
    }),
  }),
  ...mutantsOf(WebhookStore, {
    "forgets who rotated a secret": ({ rotateSecret }) => ({
      rotateSecret: (projectId, webhookId, rotation, { at }) =>
        rotateSecret(projectId, webhookId, rotation, { at, origin: hostOrigin }),
    }),

    "audits a key pair that is there already": ({ addSigningKey, list, rotateSecret }) => ({
      addSigningKey: Effect.fnUntraced(function* (projectId, webhookId, key, occasion) {
        const [known] = yield* Effect.orDie(list(projectId))
        const stored = yield* addSigningKey(projectId, webhookId, key, occasion)
        if (known?.signingKey !== undefined) {
          const rotation = { secret: known.secret, previousUntil: 0 }
          yield* Effect.orDie(rotateSecret(projectId, webhookId, rotation, occasion))
        }
        return stored
      }),
    }),
  }),
  ...mutantsOf(ApiKeyStore, {
    "forgets who issued a key": ({ add }) => ({
      add: (key, { at }) => add(key, { at, origin: hostOrigin }),
    }),

    "forgets when a key was revoked": ({ revoke }) => ({
      revoke: (revocation) => revoke({ ...revocation, at: 0 }),
    }),
  }),
]
