import { expect, it } from "@effect/vitest"
import { memory } from "@tenure/memory"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { ApiKeys } from "../../src/keys/api-keys.ts"
import { toPrincipal } from "../../src/keys/identity.ts"
import { Tickets } from "../../src/keys/tickets.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { type Services, tenureLayer } from "../../src/tenure.ts"

const { p1, p2 } = Fixture

const services = Layer.provide(tenureLayer({ keyCacheTtl: 0, expiry: false }), memory())

/** Issues a ticket for one project with a key for two. */
const issued = Effect.gen(function* () {
  const { createProject } = yield* Memberships
  yield* createProject(p1)
  yield* createProject(p2)
  const apiKeys = yield* ApiKeys
  const { id, token } = yield* apiKeys.issue({ projects: [p1, p2], role: "admin" })
  const key = (yield* apiKeys.authenticate(token)) ?? expect.fail("the key is unknown")
  const tickets = yield* Tickets
  const { ticket } = yield* tickets.issue({ ...key, keyId: id, isReadOnly: false }, new Set([p1]))
  return { id, ticket, tickets }
})

const test = (
  name: string,
  body: (given: Effect.Success<typeof issued>) => Effect.fn.Return<void, unknown, Services>,
): void =>
  it.effect(name, () =>
    Effect.flatMap(issued, (given) => Effect.gen(() => body(given))).pipe(Effect.provide(services)),
  )

test("a ticket is a client's, for its projects, until its key is revoked", function* ({
  id,
  ticket,
  tickets,
}) {
  const holder = (yield* tickets.redeem(ticket)) ?? expect.fail("the ticket is unknown")
  expect(holder).toMatchObject({ keyId: id, role: "client", projects: new Set([p1]) })
  expect(holder.digest).toBeUndefined()
  const used = holder.ticket ?? expect.fail("the holder has no ticket")
  yield* TestClock.adjust("1 hour")
  expect(yield* tickets.renew(used)).toEqual(holder)
  yield* (yield* ApiKeys).revoke(id)
  expect(yield* tickets.renew(used)).toBeUndefined()
})

test("a ticket lives for a minute before it is redeemed", function* ({ ticket, tickets }) {
  yield* TestClock.adjust("60 seconds")
  expect(yield* tickets.redeem(ticket)).toBeUndefined()
})

test("a ticket does not open a project that its key has lost", function* ({ ticket, tickets }) {
  yield* (yield* Memberships).deleteProject(p1)
  expect((yield* tickets.redeem(ticket))?.projects).toEqual(new Set())
})

test("a ticket of whom the host identified opens the projects it was issued for", function* ({
  tickets,
}) {
  const principal = toPrincipal({ keyId: "user-7", projects: [p1, p2] })
  for (const [asked, projects] of [
    ["all", new Set([p1, p2])],
    [new Set([p2]), new Set([p2])],
  ] as const) {
    const { ticket } = yield* tickets.issue(principal, asked)
    expect(yield* tickets.redeem(ticket)).toMatchObject({ keyId: "user-7", projects })
  }
})
