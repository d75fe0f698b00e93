/** The audit trail of what is not a membership. */

import { expect } from "@effect/vitest"
import { ApiKeyId } from "@tenure/core/ApiKey"
import { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { MembershipStore } from "@tenure/core/MembershipStore"
import { ProjectId } from "@tenure/core/Project"
import { StoredSecret } from "@tenure/core/StoredSecret"
import { WebhookStore } from "@tenure/core/WebhookStore"
import * as Effect from "effect/Effect"
import { apiKey, change, in2027, p1, p2, u1, webhook } from "../../support/fixtures.ts"
import { undone } from "../HostTransaction.ts"
import type { StoreTests } from "../storeTests.ts"

const page = { userId: undefined, limit: 100 }

/** Returns an occasion that can be told from others by its time. */
const occasion = (at: number) => ({
  at,
  origin: { requestId: `request ${at}`, keyId: ApiKeyId(`key ${at}`) },
})

/** What the rows of the trail say, oldest first. */
const trailOf = (projectId: typeof p1 | undefined) =>
  Effect.flatMap(MembershipStore, (store) =>
    Effect.map(store.history(projectId, page), (rows) =>
      rows.toReversed().map(({ action, at, keyName, origin, subject, ...row }) => {
        expect(origin).toEqual(occasion(at).origin)
        expect([row.projectId, keyName]).toEqual([projectId, undefined])
        expect([row.userId, row.from, row.to]).toEqual([undefined, undefined, undefined])
        return [at, action, subject]
      }),
    ),
  )

/** Declares the tests. */
export const auditingTests = ({ describe, test, transactional }: StoreTests): void => {
  describe("the audit trail", () => {
    test("has who changed webhooks, and only of changes", () =>
      Effect.gen(function* () {
        const store = yield* WebhookStore
        const memberships = yield* MembershipStore
        yield* memberships.createProject(p1, occasion(1))
        yield* memberships.createProject(p2, occasion(2))
        const { id, ...rest } = webhook(p1)
        const rotation = { secret: webhook(p1).secret, previousUntil: 0 }
        yield* store.add({ id, ...rest, disabledAt: 0 }, 1, occasion(3))
        yield* Effect.flip(store.add(webhook(p1), 1, occasion(4)))
        yield* store.rotateSecret(p1, id, rotation, occasion(5))
        yield* Effect.flip(store.rotateSecret(p2, id, rotation, occasion(6)))
        yield* store.addSigningKey(p1, id, StoredSecret("whsk_1"), occasion(7))
        yield* store.addSigningKey(p1, id, StoredSecret("whsk_2"), occasion(8))
        yield* store.enable(p1, id, occasion(9))
        yield* store.remove(p1, id, occasion(10))
        yield* Effect.flip(store.remove(p1, id, occasion(11)))
        const rows = yield* trailOf(p1)
        expect(rows.filter(([, action]) => action !== "webhook_enabled")).toEqual([
          [3, "webhook_created", id],
          [5, "secret_rotated", id],
          [7, "signing_key_added", id],
          [10, "webhook_deleted", id],
        ])
        expect(yield* trailOf(p2)).toEqual([])
      }))

    test("has who was shown what", () =>
      Effect.gen(function* () {
        const store = yield* MembershipStore
        yield* store.createProject(p1, occasion(1))
        yield* store.createProject(p2, occasion(2))
        const secret = { action: "secret_shown", subject: "a webhook" } as const
        const data = { action: "data_shown", subject: "an event" } as const
        yield* store.recordShown(p1, secret, occasion(3))
        yield* store.recordShown(p1, data, occasion(4))
        yield* store.recordShown(p1, data, occasion(5))
        const missing = yield* Effect.flip(
          store.recordShown(ProjectId("nowhere"), secret, occasion(6)),
        )
        expect(missing._tag).toBe("ProjectNotFound")
        expect(yield* trailOf(p1)).toEqual([
          [3, "secret_shown", "a webhook"],
          [4, "data_shown", "an event"],
          [5, "data_shown", "an event"],
        ])
        expect(yield* trailOf(p2)).toEqual([])
      }))

    test("has who changed keys and projects, and only of changes", () =>
      Effect.gen(function* () {
        const store = yield* ApiKeyStore
        const memberships = yield* MembershipStore
        yield* memberships.createProject(p1, occasion(1))
        yield* memberships.createProject(p1, occasion(2))
        yield* memberships.createProject(p2, occasion(3))
        const { id: keyId, ...rest } = apiKey("a token", p1)
        const key = { id: keyId, ...rest }
        yield* store.add(key, occasion(4))
        yield* store.add(apiKey("a token", p1), occasion(5))
        yield* store.add(apiKey("a token", p2), occasion(6))
        yield* store.add({ ...apiKey("a token"), projects: "all" }, occasion(7))
        yield* store.add({ ...apiKey("a token"), projects: "all" }, occasion(8))
        yield* Effect.flip(store.add({ ...key, role: "admin" }, occasion(9)))
        yield* store.revoke({ keyId, within: "all", ...occasion(10) })
        yield* store.revoke({ keyId, within: "all", ...occasion(11) })
        yield* Effect.flip(store.add(key, occasion(12)))
        expect(yield* trailOf(undefined)).toEqual([
          [1, "project_created", p1],
          [3, "project_created", p2],
          [4, "key_issued", keyId],
          [6, "key_opened", keyId],
          [7, "key_opened", keyId],
          [10, "key_revoked", keyId],
        ])
      }))

    test("has the names of keys, also of those that were revoked since", () =>
      Effect.gen(function* () {
        const store = yield* ApiKeyStore
        const memberships = yield* MembershipStore
        yield* memberships.createProject(p1, occasion(1))
        const [named, nameless] = [
          { ...apiKey("a token", p1), name: "nightly import" },
          apiKey("another", p1),
        ]
        yield* store.add(named, occasion(2))
        yield* store.add(nameless, occasion(3))
        for (const keyId of [named.id, nameless.id, ApiKeyId("a host's own")]) {
          const origin = { requestId: undefined, keyId }
          yield* memberships.grant({ ...change(p1), origin, userId: u1, endDate: in2027 })
        }
        const origin = { requestId: undefined, keyId: named.id }
        yield* store.revoke({ keyId: named.id, within: "all", origin, at: 4 })
        const names = (projectId: typeof p1 | undefined) =>
          Effect.map(memberships.history(projectId, { ...page, limit: 3 }), (rows) =>
            rows.map(({ keyName }) => keyName),
          )
        const expected = [undefined, undefined, "nightly import"]
        expect(yield* names(p1)).toEqual(expected)
        const ofUser = yield* memberships.history(p1, { ...page, userId: u1 })
        expect(ofUser.map(({ keyName }) => keyName)).toEqual(expected)
        expect((yield* names(undefined))[0]).toBe("nightly import")
      }))

    transactional("is undone with a transaction of the host that fails", () =>
      Effect.gen(function* () {
        const memberships = yield* MembershipStore
        const webhooks = yield* WebhookStore
        const keys = yield* ApiKeyStore
        yield* memberships.createProject(p1, occasion(1))
        yield* undone(webhooks.add(webhook(p1), 50, occasion(2)))
        yield* undone(keys.add(apiKey("a token", p1), occasion(3)))
        yield* undone(memberships.createProject(p2, occasion(4)))
        expect(yield* trailOf(p1)).toEqual([])
        expect(yield* trailOf(undefined)).toEqual([[1, "project_created", p1]])
      }),
    )
  })
}
