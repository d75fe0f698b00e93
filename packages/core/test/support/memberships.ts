/** Memberships in a store in memory. */

import { memory } from "@tenure/memory"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as Setting from "../../src/base/setting.ts"
import { hooksLayer } from "../../src/events/event.ts"
import { membershipsOptions } from "../../src/memberships/membership-acts.ts"
import { Memberships } from "../../src/memberships/memberships.ts"
import { MembershipStore } from "../../src/memberships/store.ts"

type Store = MembershipStore["Service"]
type Service = Memberships["Service"]

/** Memberships, with the bodies and ids of their events. */
interface Opened extends Service {
  readonly memberships: Service
  readonly bodies: ReadonlyArray<string>
  readonly ids: ReadonlyArray<string>
  /** Parses the bodies. */
  readonly told: () => ReadonlyArray<Readonly<Record<string, unknown>>>
}

/** Returns how to open memberships at an instant with the project `p1`, in a time zone if given, and their events. */
export const membershipsAt = (now: number, timeZone?: string) => {
  /** Opens them on a changed store. */
  const membershipsWith = Effect.fnUntraced(function* (
    change: (store: Store) => Partial<Store>,
    options: object = {},
  ) {
    yield* TestClock.setTime(now)
    const bodies: Array<string> = []
    const ids: Array<string> = []
    const onEvent = (event: { readonly id: string; readonly body: string }) => {
      ids.push(event.id)
      bodies.push(event.body)
    }
    const store = Layer.effect(
      MembershipStore,
      Effect.map(MembershipStore, (own) => ({ ...own, ...change(own) })),
    )
    const services = yield* Layer.build(
      Memberships.layer({ ...Setting.parse(membershipsOptions, options), expiry: undefined }).pipe(
        Layer.provide(Layer.provide(store, memory())),
        Layer.provide(hooksLayer({ onEvent })),
      ),
    )
    const memberships = Context.get(services, Memberships)
    yield* memberships.createProject("p1")
    if (timeZone !== undefined) yield* memberships.updateProject({ projectId: "p1", timeZone })
    const told = () => bodies.map((body) => JSON.parse(body))
    const opened: Opened = { ...memberships, memberships, bodies, ids, told }
    return opened
  })
  return { membershipsWith, opened: membershipsWith(() => ({})) }
}
