/** Memberships: all the code that adds Tenure to this backend. */

import { type Member, MembershipNotFound, type Tenure, createTenure } from "@tenure/core"
import { membershipMiddleware } from "@tenure/express"
import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { postgres } from "@tenure/postgres"
import type { RequestHandler } from "express"
import type { Database, Payment } from "./database.ts"
import * as Log from "./log.ts"
import { personOf } from "./sessions.ts"

/** Makes Tenure, with a project for each club. */
export const makeTenure = async (
  database: Database,
  databaseUrl: string | undefined,
): Promise<Tenure> => {
  const tenure = await createTenure({
    stores: databaseUrl === undefined ? memory() : postgres({ url: databaseUrl }),
    transport: nodeTransport,
    onError: ({ cause, message }) => Log.error(message, cause),
  })
  await Promise.all(database.clubs().map(({ id }) => tenure.memberships.createProject(id)))
  return tenure
}

/** The API, authenticated by sessions. A session opens its person's clubs. */
export const membersApi = (tenure: Tenure, database: Database): RequestHandler =>
  membershipMiddleware(tenure, {
    authenticate: (request) => {
      const person = personOf(database, request)
      return (
        person && { keyId: person.name, projects: database.clubsOf(person).map(({ id }) => id) }
      )
    },
  })

const endDateOf = ({ memberships }: Tenure, member: Member): Promise<number> =>
  memberships.find(member).then(
    ({ endDate }) => endDate,
    (error: unknown) => {
      if (error instanceof MembershipNotFound) return 0
      throw error
    },
  )

/**
 * Grants a membership to the end of the paid year, unless it already lasts longer. Repeating it is
 * harmless, so a call can be made again after a failure half-way.
 */
export const onPayment = async (tenure: Tenure, payment: Payment): Promise<void> => {
  const { clubId: projectId, userId } = payment
  const endDate = Date.UTC(payment.year + 1, 0)
  if ((await endDateOf(tenure, { projectId, userId })) < endDate) {
    await tenure.memberships.grant({ projectId, userId, endDate })
  }
  await tenure.events.publish({
    projectId,
    type: "payment.completed",
    data: { payment_id: payment.id, user_id: userId, year: payment.year },
  })
}
