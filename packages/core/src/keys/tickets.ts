/** The service for tickets, with which pages in browsers follow the feed. */

import * as Context from "effect/Context"
import { WebCrypto } from "effect/crypto/WebCrypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { encodeBase64Url } from "../base/bytes.ts"
import type { StoreUnavailable } from "../base/errors.ts"
import { currentMoment } from "../base/time.ts"
import { ProjectId } from "../base/values.ts"
import {
  type ApiKey,
  type Ticket,
  type TicketLimitReached,
  digestToken,
  isToken,
} from "./api-key.ts"
import { ApiKeys } from "./api-keys.ts"
import type { Principal } from "./identity.ts"
import { type TicketLimits, TicketStore } from "./store.ts"

/** A ticket that was issued. Only its digest is stored. */
export interface IssuedTicket {
  readonly ticket: string
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
}

/** How long a ticket lives, and how many of a key may live at a time. */
const ticketLimits: TicketLimits = { lifeMillis: 60_000, most: 1000 }

/** Issues tickets, each for the feeds of some projects, and finds out whose they are. */
export class Tickets extends Context.Service<
  Tickets,
  {
    /**
     * Issues a ticket, which can be used once within 60 seconds. Fails with `TicketLimitReached` if the
     * key has 1,000 tickets that were not used.
     *
     * @param principal - whose ticket it is; may use all of the projects
     * @param projects - the projects that the ticket opens; `"all"` for all that the principal may use
     */
    readonly issue: (
      principal: Principal,
      projects: Principal["projects"],
    ) => Effect.Effect<IssuedTicket, TicketLimitReached | StoreUnavailable>

    /**
     * Takes a ticket. Returns who may follow the feed by it: `undefined` if the ticket is unknown, was
     * used or has expired, or if its key is not valid any more.
     */
    readonly redeem: (ticket: string) => Effect.Effect<Principal | undefined, StoreUnavailable>

    /**
     * Finds out again who may follow the feed by a ticket that was redeemed.
     *
     * @param mostAge - how old the answer of the store of keys may be, as for `ApiKeys.byDigest`
     */
    readonly renew: (
      ticket: Ticket,
      mostAge?: number,
    ) => Effect.Effect<Principal | undefined, StoreUnavailable>
  }
>()("@tenure/core/Tickets") {
  static readonly layer: Layer.Layer<Tickets, never, ApiKeys | TicketStore> = Layer.effect(
    this,
    Effect.suspend(() => make),
  )
}

/** What is left of the projects of a ticket: its key may have lost some since. */
const projectsOf = ({ projects }: Ticket, key: ApiKey): Principal["projects"] => {
  const { projects: opened } = key
  if (projects === "all") return opened
  return opened === "all" ? projects : new Set([...projects].filter((id) => opened.has(id)))
}

const make = Effect.gen(function* () {
  const store = yield* TicketStore
  const apiKeys = yield* ApiKeys
  const crypto = yield* WebCrypto

  const makeTicket = () => `tkt_${encodeBase64Url(crypto.getRandomValues(new Uint8Array(32)))}`

  const renew = (
    ticket: Ticket,
    mostAge?: number,
  ): Effect.Effect<Principal | undefined, StoreUnavailable> => {
    const { keyDigest, keyId, projects } = ticket
    const holder = { keyId, role: "client", isReadOnly: true, ticket } as const
    // Nobody but the host knows, which is asked again for the next ticket.
    if (keyDigest === undefined) return Effect.succeed({ ...holder, projects })
    return Effect.map(
      apiKeys.byDigest(keyDigest, mostAge),
      (key) => key && { ...holder, projects: projectsOf(ticket, key) },
    )
  }

  return Tickets.of({
    issue: Effect.fnUntraced(function* (principal, asked) {
      const { digest: keyDigest, keyId } = principal
      const ticket = makeTicket()
      const { unix } = yield* currentMoment
      // What the host allows is known only now, and what a key opens also later.
      const opened = asked === "all" && keyDigest === undefined ? principal.projects : asked
      const projects = opened === "all" ? opened : new Set([...opened].filter(ProjectId.is))
      yield* store.add({ digest: digestToken(ticket), keyId, keyDigest, projects }, ticketLimits)
      return { ticket, expiresAt: unix + ticketLimits.lifeMillis }
    }),

    redeem: (text) =>
      isToken(text)
        ? Effect.flatMap(store.take(digestToken(text)), (ticket) =>
            ticket === undefined ? Effect.undefined : renew(ticket),
          )
        : Effect.undefined,

    renew,
  })
})
