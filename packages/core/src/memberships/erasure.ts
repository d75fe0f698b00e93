/** Finds and erases a person in events. */

import type { Event } from "../events/event.ts"
import type { UserId } from "./membership.ts"

const isOfMembership = ({ type }: Event): boolean => type.startsWith("membership.")

/**
 * Matches each `user_id` with this user in an event's body, and in a membership's event, also the
 * fields written by `move`. Hosts may publish a user id with digits as a number.
 */
const userIn = (event: Event, userId: UserId): RegExp => {
  const text = JSON.stringify(userId).replaceAll(/[^A-Za-z0-9]/g, "\\$&")
  const value = /^[0-9]+$/.test(userId) ? `(?:${text}|${userId})` : text
  const field = isOfMembership(event) ? "user_id|moved_to|moved_from" : "user_id"
  return new RegExp(`"(${field})":${value}(?=[,}])`, "g")
}

const reason = /"reason":"(?:[^"\\]|\\.)*"/

const metadataField = /"metadata":\{(?:[,:]?"(?:[^"\\]|\\.)*")*\}/

/** Tells whether an event has a user id. */
export const mentionsUser = (event: Event, userId: UserId): boolean =>
  userIn(event, userId).test(event.body)

/**
 * Removes a user id from an event: sets each `user_id` with this user to null, at any depth, and in a
 * membership's events, also `moved_to` and `moved_from` with this user, the reason and the metadata,
 * because these may name the person.
 */
export const eraseUser = (event: Event, userId: UserId): Event => {
  const body = event.body.replace(userIn(event, userId), '"$1":null')
  return {
    ...event,
    body: isOfMembership(event)
      ? body.replace(metadataField, '"metadata":null').replace(reason, '"reason":null')
      : body,
  }
}
