/** What events say of a person who is erased. */

import type { Event } from "../events/Event.ts"
import type { UserId } from "./Membership.ts"

const isOfMembership = ({ type }: Event): boolean => type.startsWith("membership.")

/** Matches, in the body of an event, each `user_id` that is this user. The digits of an id need no escape. */
const userIn = (userId: UserId): RegExp =>
  new RegExp(`"user_id":(?:"${userId}"|${userId})(?=[,}])`, "g")

const reason = /"reason":"(?:[^"\\]|\\.)*"/

/** Tells whether an event has a user id. */
export const concerns = ({ body }: Event, userId: UserId): boolean => userIn(userId).test(body)

/**
 * Returns an event without a user id: each `user_id` that is this user is null then, at any depth of the
 * data, and so is the reason of a change of the membership, which may name the person.
 */
export const erase = (event: Event, userId: UserId): Event => {
  const body = event.body.replace(userIn(userId), '"user_id":null')
  return {
    ...event,
    body: isOfMembership(event) ? body.replace(reason, '"reason":null') : body,
  }
}
