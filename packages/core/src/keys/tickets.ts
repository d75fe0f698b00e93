/** The ticket service: browsers follow the feed with tickets. */

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

/** An issued ticket. Only its digest is stored. */
export interface IssuedTicket {
  readonly ticket: string
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
}

/** A ticket's life, and the maximum number of a key's live tickets. */
const ticketLimits: TicketLimits = { lifeMillis: 60_000, most: 1000 }

/** Issues tickets for projects' feeds, and finds their principals. */
export class Tickets extends Context.Service<
  Tickets,
  {
    /**
     * Issues a ticket, valid once within 60 seconds. Fails with `TicketLimitReached` if the key has
     * 1,000 unused tickets.
     *
     * @param principal - the ticket's holder; may use all the projects
     * @param projects - the ticket's projects; `"all"` for all the principal may use
     */
    readonly issue: (
      principal: Principal,
      projects: Principal["projects"],
    ) => Effect.Effect<IssuedTicket, TicketLimitReached | StoreUnavailable>

    /**
     * Takes a ticket. Returns its principal; `undefined` if the ticket is unknown, used or expired, or
     * its key is no longer valid.
     */
    readonly redeem: (ticket: string) => Effect.Effect<Principal | undefined, StoreUnavailable>

    /**
     * Determines a redeemed ticket's principal again.
     *
     * @param maxAge - the maximum age of the key store's answer, as in `ApiKeys.byDigest`
     */
    readonly renew: (
      ticket: Ticket,
      maxAge?: number,
    ) => Effect.Effect<Principal | undefined, StoreUnavailable>
  }
>()("@tenure/core/Tickets") {
  static readonly layer: Layer.Layer<Tickets, never, ApiKeys | TicketStore> = Layer.effect(
    this,
    Effect.suspend(() => make),
  )
}

/** Returns a ticket's remaining projects, because its key may have lost some since. */
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
    maxAge?: number,
  ): Effect.Effect<Principal | undefined, StoreUnavailable> => {
    const { keyDigest, keyId, projects } = ticket
    const holder = { keyId, role: "client", isReadOnly: true, ticket } as const
    // Only the host knows, and it decides again about the next ticket.
    if (keyDigest === undefined) return Effect.succeed({ ...holder, projects })
    return Effect.map(
      apiKeys.byDigest(keyDigest, maxAge),
      (key) => key && { ...holder, projects: projectsOf(ticket, key) },
    )
  }

  return Tickets.of({
    issue: Effect.fnUntraced(function* (principal, asked) {
      const { digest: keyDigest, keyId } = principal
      const ticket = makeTicket()
      const { unix } = yield* currentMoment
      // The host's permission is known only now; a key's projects can be looked up later.
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
