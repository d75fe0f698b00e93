/** Code from a host with promises. The tests show how to test it. */

import {
  type Event,
  type Member,
  MembershipNotFound,
  type PromisedServices,
  type Tenure,
} from "@tenure/core"

/** Returns whether a user has an active membership. */
export const isMember = async (
  { memberships }: Pick<PromisedServices, "memberships">,
  member: Member,
): Promise<boolean> => {
  try {
    return (await memberships.find(member)).state === "active"
  } catch (error) {
    if (error instanceof MembershipNotFound) return false
    throw error
  }
}

const month = 30 * 86_400_000

/** Charges a user, and returns `true` on success. */
export type Charge = (userId: string) => Promise<boolean>

/** Renews a membership by a month when its reminder comes, if the user can be charged. */
export const renewByReminder =
  (charge: Charge) =>
  async ({ memberships }: Pick<Tenure, "memberships">, { body, type }: Event): Promise<void> => {
    if (type !== "membership.expiring") return
    const {
      data,
    }: {
      readonly data: {
        readonly project_id: string
        readonly user_id: string
        readonly end_date: string
      }
    } = JSON.parse(body)
    if (!(await charge(data.user_id))) return
    const endDate = new Date(Date.parse(data.end_date) + month)
    await memberships.extend({
      projectId: data.project_id,
      userId: data.user_id,
      endDate,
      mode: "neverShorten",
    })
  }
