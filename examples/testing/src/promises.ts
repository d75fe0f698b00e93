/** Code of a host that uses promises. The tests show how to test it. */

import { type Member, MembershipNotFound, type Promises } from "@tenure/core"

const week = 7 * 86_400_000

/** Whether a user has a membership that has not expired. */
export const isMember = async (
  { memberships }: Pick<Promises, "memberships">,
  member: Member,
): Promise<boolean> => {
  try {
    const { endDate } = await memberships.find(member)
    return endDate > Date.now()
  } catch (error) {
    if (error instanceof MembershipNotFound) return false
    throw error
  }
}

/** Publishes `renewal.offered` for each membership that ends within a week. */
export const offerRenewals = async (
  tenure: Pick<Promises, "events" | "memberships">,
  projectId: string,
  after?: string,
): Promise<void> => {
  const now = Date.now()
  const page = await tenure.memberships.list({ projectId, after })
  const expiring = page.filter(({ endDate }) => endDate > now && endDate <= now + week)
  await Promise.all(
    expiring.map(({ endDate, userId }) =>
      tenure.events.publish({
        projectId,
        type: "renewal.offered",
        data: { user_id: userId, end_date: new Date(endDate).toISOString() },
      }),
    ),
  )
  const last = page.at(-1)
  if (last !== undefined) await offerRenewals(tenure, projectId, last.userId)
}
