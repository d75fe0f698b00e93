/** A user's memberships in a few projects: reads them, grants them at sign-up, and ends them. */

import type { Member, Tenure } from "@tenure/core"
import { digestToken, hasTag, unless } from "@tenure/core/internal"
import type { User } from "better-auth"

/** A membership, as the session has it. */
export interface SessionMembership {
  /** The project's id. */
  readonly projectId: string
  /** When it ends, or has ended. */
  readonly endDate: Date
  /**
   * When the session was read: `"paused"` in a pause, and `"expired"` if the end date was over, and the project's grace,
   * too.
   */
  readonly state: "active" | "paused" | "expired"
  /** When it expires, if the end date was over then, and it was still active by the project's grace; otherwise `null`. */
  readonly graceUntil: Date | null
  /** When its pause ends by itself, if it was paused then, and nobody has to resume it; otherwise `null`. */
  readonly resumesAt: Date | null
}

/** Returns when a new user's membership ends; `undefined` for none. */
export type TrialEnd = (user: User, projectId: string) => Date | undefined

/** The fates of a deleted user's memberships. */
export const deletions = ["end", "erase", "keep"] as const

/** The fate of a deleted user's memberships. */
export type Deletion = (typeof deletions)[number]

const origin = { keyId: "better-auth" }

/** How long after sign-up a missed trial is granted: as long as stores remember what they have granted, by default. */
const lateMillis = 86_400_000

const dateOrNull = (millis: number | undefined): Date | null =>
  millis === undefined ? null : new Date(millis)

/** Makes the functions for a user's memberships in these projects. */
export const makeMemberProjects = (
  memberships: Tenure["memberships"],
  projects: ReadonlyArray<string>,
  trialEnd: TrialEnd,
) => {
  const find = (member: Member) => unless(["MembershipNotFound"], memberships.find(member))

  /** Grants the membership of a new user, once, unless a payment has created it meanwhile. */
  const grantTrial = async (member: Member, endDate: Date): Promise<void> => {
    // A digest is short enough for a key.
    const idempotencyKey = digestToken(JSON.stringify([member.projectId, member.userId]))
    const trial = { ...member, endDate, ifAbsent: true, reason: "sign-up", idempotencyKey }
    // Another reading has granted it, with another end date.
    await unless(["IdempotencyMismatch"], memberships.grant(trial, origin))
  }

  const isKnown = async (member: Member): Promise<boolean> =>
    (await memberships.history({ ...member, limit: 1 })).length > 0

  /**
   * Grants a membership if the user has just signed up, is to have a trial, and never had a membership in the project, as
   * an anonymous user neither. So a trial missed at sign-up is granted later, and an ended one is not.
   */
  const grantMissing = async (
    user: User,
    projectId: string,
    anonymousId: string | undefined,
  ): Promise<void> => {
    if (Date.now() - user.createdAt.getTime() > lateMillis) return
    const endDate = trialEnd(user, projectId)
    if (endDate === undefined || endDate.getTime() <= Date.now()) return
    const member = { projectId, userId: user.id }
    if (await isKnown(member)) return
    if (anonymousId !== undefined && (await isKnown({ projectId, userId: anonymousId }))) return
    await grantTrial(member, endDate)
  }

  const read = async (
    user: User,
    projectId: string,
    anonymousId: string | undefined,
  ): Promise<SessionMembership | undefined> => {
    const member = { projectId, userId: user.id }
    const found =
      (await find(member)) ??
      (await grantMissing(user, projectId, anonymousId).then(() => find(member)))
    if (found === undefined) return undefined
    const { endDate, graceUntil, resumesAt, state } = found
    return {
      projectId,
      endDate: new Date(endDate),
      state,
      graceUntil: dateOrNull(graceUntil),
      resumesAt: dateOrNull(resumesAt),
    }
  }

  return {
    /**
     * Reads a user's memberships. Grants trials missed at sign-up.
     *
     * @param anonymousId - this user's id before, whose memberships move
     */
    readAll: async (
      user: User,
      anonymousId?: string,
    ): Promise<ReadonlyArray<SessionMembership>> => {
      const found = await Promise.all(
        projects.map((projectId) => read(user, projectId, anonymousId)),
      )
      return found.filter((membership) => membership !== undefined)
    },

    /** Moves a user's memberships to another user, project by project. Paused ones stay: then it rejects at the end. */
    moveAll: async (userId: string, to: string): Promise<void> => {
      const conflicts: Array<unknown> = []
      for (const projectId of projects) {
        const member = { projectId, userId }
        const move = memberships.move({ ...member, to, reason: "account linked" }, origin)
        await unless(["MembershipNotFound"], move).catch((error: unknown) => {
          if (!hasTag(error, ["StateConflict"])) throw error
          conflicts.push(error)
        })
      }
      if (conflicts.length > 0) throw conflicts[0]
    },

    /** Ends or erases a user's memberships, project by project. */
    deleteAll: async (userId: string, deletion: Exclude<Deletion, "keep">): Promise<void> => {
      for (const projectId of projects) {
        const member = { projectId, userId }
        await unless(["MembershipNotFound"], memberships[deletion](member, origin))
      }
    },
  }
}
