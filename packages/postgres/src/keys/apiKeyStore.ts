/** API keys on PostgreSQL. */

import {
  ApiKeyConflict,
  type ApiKey,
  ApiKeyId,
  ApiKeyNotFound,
  ApiKeyRevoked,
  type TokenDigest,
} from "@tenure/core/ApiKey"
import type { ApiKeyStore } from "@tenure/core/ApiKeyStore"
import { IdempotencyMismatch } from "@tenure/core/Once"
import type { Occasion } from "@tenure/core/Origin"
import { ProjectNotFound } from "@tenure/core/Project"
import { StoreUnavailable } from "@tenure/core/StoreUnavailable"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { occasionParams } from "../audit/fragments.sql.ts"
import type { Executor } from "../connection/Executor.ts"
import * as Gather from "../connection/Gather.ts"
import { instants, integer, text, texts } from "../connection/parameters.ts"
import type { Answers } from "../idempotency/Answers.ts"
import { formOf, forms } from "../idempotency/fragments.sql.ts"
import { type AddedRow, addKey, addKeyParams } from "./addKey.sql.ts"
import { findKeys } from "./findKeys.sql.ts"
import { type KeyRow, toKey, withinParam } from "./fragments.sql.ts"
import { listKeys } from "./listKeys.sql.ts"
import { type NameRow, namesOfKeys } from "./namesOfKeys.sql.ts"
import { revokeKey } from "./revokeKey.sql.ts"
import { touchKeys } from "./touchKeys.sql.ts"

type Revocation = Parameters<ApiKeyStore["Service"]["revoke"]>[0]

/** Makes the store. */
export const make = Effect.fnUntraced(function* (executor: Executor, answers: Answers) {
  const { schema } = executor
  const sql = {
    add: forms(schema, addKey, 12),
    find: findKeys(schema),
    list: listKeys(schema),
    names: namesOfKeys(schema),
    revoke: forms(schema, revokeKey, 5),
    touch: touchKeys(schema),
  }

  const findMany = (digests: ReadonlyArray<TokenDigest>) =>
    // Authenticates requests, so it does not depend on the host's open transaction.
    Effect.map(
      executor.executeApart<KeyRow>(sql.find, [texts(digests)], { owner: "keys" }),
      (rows) => {
        const keys = new Map(rows.map((row) => [row.digest, toKey(row)]))
        return digests.map((digest) => Option.fromUndefinedOr(keys.get(digest)))
      },
    )

  const findGathered = yield* Gather.make({
    run: findMany,
    isOwn: () => false,
    maxBatch: 256,
    maxInFlight: 2,
    crowded: new StoreUnavailable({ cause: "crowded" }),
  })

  const add = Effect.fnUntraced(function* (key: ApiKey, occasion: Occasion) {
    const form = formOf(sql.add, addKeyParams(key, occasion), occasion.once)
    const [row] = yield* executor.execute<AddedRow>(...form)
    if (row === undefined) return yield* new IdempotencyMismatch()
    if (row.missing !== null) return yield* new ProjectNotFound({ projectId: row.missing })
    const added = toKey(row)
    const { id, revokedAt, role } = added
    if (revokedAt !== undefined) return yield* new ApiKeyRevoked({ keyId: id })
    return role === key.role ? added : yield* new ApiKeyConflict({ keyId: id, role })
  })

  const revoke = Effect.fnUntraced(function* ({ keyId, within, ...occasion }: Revocation) {
    const params = [text(keyId), withinParam(within), ...occasionParams(occasion)]
    const rows = yield* executor.execute(...formOf(sql.revoke, params, occasion.once))
    if (rows.length === 0) return yield* new ApiKeyNotFound({ keyId })
  })

  const store: ApiKeyStore["Service"] = {
    ping: executor.ping,

    add: (key, occasion) => answers.change(occasion.once, add(key, occasion)),

    find: (digest) => Effect.map(findGathered(digest), Option.getOrUndefined),

    revoke: (revocation) => answers.change(revocation.once, revoke(revocation)),

    touch: (uses) =>
      executor.executeApart(sql.touch, [texts([...uses.keys()]), instants([...uses.values()])], {
        owner: "keys",
        isBrief: true,
      }),

    names: (keyIds) =>
      Effect.map(
        executor.execute<NameRow>(sql.names, [texts([...keyIds])]),
        (rows) => new Map(rows.map(({ id, name }) => [ApiKeyId(id), name])),
      ),

    list: Effect.fnUntraced(function* ({ after, limit, within }) {
      const list = (most: number) =>
        executor.execute<KeyRow>(sql.list, [text(after), integer(most), withinParam(within)])
      if (after === undefined) return (yield* list(limit)).map(toKey)
      const [first, ...rows] = yield* list(limit + 1)
      return first?.id === after ? rows.map(toKey) : yield* new ApiKeyNotFound({ keyId: after })
    }),
  }
  return store
})
