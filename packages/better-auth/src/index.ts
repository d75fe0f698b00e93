/** A plugin for Better Auth: memberships in the session, from sign-up to the user's deletion. */

import type { Tenure } from "@tenure/core"
import { Setting } from "@tenure/core/internal"
import { ProjectId } from "@tenure/core/store"
import type { BetterAuthOptions, GenericEndpointContext, Session, User } from "better-auth"
import { APIError, createAuthMiddleware, getOAuthState, getSessionFromCtx } from "better-auth/api"
import { customSession } from "better-auth/plugins"
import {
  type SessionMembership,
  type TrialEnd,
  deletions,
  makeMemberProjects,
} from "./member-projects.ts"

export type { SessionMembership, TrialEnd } from "./member-projects.ts"

const maxProjects = 10

const maxTrialDays = 3650

const dayMillis = 86_400_000

const isProjects = (given: unknown): boolean =>
  Array.isArray(given) &&
  given.length > 0 &&
  given.length <= maxProjects &&
  given.every((id) => typeof id === "string" && ProjectId.is(id)) &&
  new Set(given).size === given.length

const isTrial = (given: unknown): boolean =>
  typeof given === "function" || (typeof given === "number" && given > 0 && given <= maxTrialDays)

/** The options. */
export const membershipPluginOptions = Setting.object({
  /** The projects whose memberships are in the session. Each costs a look-up whenever a session is read. */
  projects: Setting.guarded<ReadonlyArray<string>>(
    `an array of 1 to ${maxProjects} different project ids`,
    isProjects,
  ),
  /**
   * For how many days new users become members of each project; or a function returning the end date. By default, they
   * become no members.
   */
  trial: Setting.optional(
    Setting.guarded<number | TrialEnd>(
      `a number of days, at most ${maxTrialDays}, or a function`,
      isTrial,
    ),
  ),
  /**
   * Whether deleting a user ends the memberships (`"end"`), ends them and erases the user id in Tenure (`"erase"`), or
   * leaves them (`"keep"`). If an anonymous user signs up or in, they move to that user first. Default: `"end"`.
   */
  onDelete: Setting.withDefault(Setting.oneOf(deletions), "end"),
  /** The options of `betterAuth` with additional fields and other plugins, for the types of user and session. */
  options: Setting.optional(
    Setting.guarded<BetterAuthOptions>(
      "an object",
      (given) => typeof given === "object" && given !== null,
    ),
  ),
})

/** The options as a host passes them. */
export interface MembershipPluginOptions<
  Options extends BetterAuthOptions = BetterAuthOptions,
> extends Setting.InputOf<typeof membershipPluginOptions> {
  /** The options of `betterAuth` with additional fields and other plugins, for the types of user and session. */
  readonly options?: Options | undefined
}

/** A session of Better Auth, with memberships. */
export interface MembershipSession<Options extends BetterAuthOptions = BetterAuthOptions> {
  readonly user: User<Options["user"], Options["plugins"]>
  readonly session: Session<Options["session"], Options["plugins"]>
  /** The user's memberships in the projects; `null` if Tenure did not answer. */
  readonly memberships: ReadonlyArray<SessionMembership> | null
}

type CustomSession<Options extends BetterAuthOptions> = ReturnType<
  typeof customSession<MembershipSession<Options>, Options>
>

/** The part of Better Auth's context used here. */
interface PluginContext {
  readonly logger: Logger
}

interface Logger {
  readonly error: (message: string, error: unknown) => void
}

/** The plugin. Clients take its types from `InferServerPlugin<typeof auth, "tenure">()`. */
export interface MembershipPlugin<
  Options extends BetterAuthOptions = BetterAuthOptions,
> extends Pick<CustomSession<Options>, "$Infer" | "endpoints"> {
  readonly id: "tenure"
  readonly init: (context: PluginContext) => {
    options: Pick<BetterAuthOptions, "databaseHooks">
  }
  readonly hooks: {
    before: Array<{
      matcher: (context: { path?: string }) => boolean
      handler: ReturnType<typeof createAuthMiddleware>
    }>
    after: Array<{
      matcher: (context: { context: { newSession?: unknown } }) => boolean
      handler: ReturnType<typeof createAuthMiddleware>
    }>
  }
}

/** Endpoints deleting users. */
const deletingPaths: ReadonlySet<string> = new Set([
  "/delete-user",
  "/delete-user/callback",
  "/delete-anonymous-user",
  "/admin/remove-user",
])

const refusal = () =>
  new APIError("SERVICE_UNAVAILABLE", {
    code: "MEMBERSHIPS_UNAVAILABLE",
    message: "Memberships cannot be changed now. Try again later",
  })

/** A request's context; `null` if the host calls Better Auth outside a request. */
type RequestContext = GenericEndpointContext | null

/** Returns the anonymous user's id if it is that user's request, as the plugin `anonymous` finds it. */
const anonymousIdOf = async (context: RequestContext): Promise<string | undefined> => {
  if (context?.context.hasPlugin("anonymous") !== true) return undefined
  // A copy: the request's own session and response stay as they are.
  const copy = { ...context, context: { ...context.context }, responseHeaders: new Headers() }
  const session = await getSessionFromCtx(copy, { disableRefresh: true })
  if (session?.user["isAnonymous"] === true) return session.user.id
  const id = (await getOAuthState())?.serverContext?.["anonymousUserId"]
  return typeof id === "string" ? id : undefined
}

/** Returns the user id that an anonymous user has now, if that is why it is deleted. */
const linkedIdOf = (
  deleted: User & Record<string, unknown>,
  context: RequestContext,
): string | undefined => {
  const user = context?.context.newSession?.user
  const isLinked =
    deleted["isAnonymous"] === true &&
    user !== undefined &&
    user["isAnonymous"] !== true &&
    user.id !== deleted.id &&
    !deletingPaths.has(context?.path ?? "")
  return isLinked ? user.id : undefined
}

/** Makes the function that tells when a trial ends. */
const makeTrialEnd = (trial: number | TrialEnd | undefined): TrialEnd => {
  if (typeof trial === "function") return trial
  if (trial === undefined) return () => undefined
  return ({ createdAt }) => new Date(createdAt.getTime() + Math.round(trial * dayMillis))
}

/**
 * Creates the plugin: sessions have the user's `memberships`. Throws `InvalidInput` if an option is invalid.
 *
 * While Tenure does not answer, users sign up and in, and `memberships` is `null`. Trials missed meanwhile are granted
 * when a session is read. Users cannot be deleted meanwhile, unless their memberships are kept.
 * @example
 * ```ts
 * import { betterAuth } from "better-auth"
 * import { createTenure } from "tenure"
 * import { membershipPlugin } from "tenure/better-auth"
 * import { memory } from "tenure/memory"
 *
 * const tenure = await createTenure({ stores: memory() })
 *
 * export const auth = betterAuth({
 *   emailAndPassword: { enabled: true },
 *   plugins: [membershipPlugin(tenure, { projects: ["p1"], trial: 14 })],
 * })
 * ```
 */
export const membershipPlugin = <Options extends BetterAuthOptions = BetterAuthOptions>(
  tenure: Pick<Tenure, "isReady" | "memberships">,
  given: MembershipPluginOptions<Options>,
): MembershipPlugin<Options> => {
  const { onDelete, projects, trial } = Setting.parse(membershipPluginOptions, given)
  const { deleteAll, moveAll, readAll } = makeMemberProjects(
    tenure.memberships,
    projects,
    makeTrialEnd(trial),
  )

  const { $Infer, endpoints } = customSession<MembershipSession<Options>, Options>(
    async ({ session, user }, { context }) => {
      const memberships = await readAll(user).catch((error: unknown) => {
        context.logger.error(`The memberships of the user ${user.id} could not be read`, error)
        return null
      })
      return { session, user, memberships }
    },
    given.options,
  )

  const refuseWhileUnavailable = createAuthMiddleware(async () => {
    if (!(await tenure.isReady())) {
      throw refusal()
    }
  })

  // Better Auth deletes the anonymous user's sessions before the user. So nobody could link it later.
  const refuseLinkWhileUnavailable = async (_created: unknown, context: RequestContext) => {
    if ((await anonymousIdOf(context)) !== undefined && !(await tenure.isReady())) throw refusal()
  }

  const moveLinked = async (anonymousId: string, linkedId: string, logger: Logger) => {
    await moveAll(anonymousId, linkedId).catch((error: unknown) => {
      logger.error(
        `The memberships of the user ${anonymousId} could not be moved to the user ${linkedId}`,
        error,
      )
      throw refusal()
    })
  }

  // For anonymous users who are not deleted. The plugin `anonymous` deletes the others before or after this.
  const moveKept = createAuthMiddleware(async (context) => {
    const user = context.context.newSession?.user
    const anonymousId = await anonymousIdOf(context)
    if (anonymousId === undefined || user === undefined) return
    if (user.id === anonymousId || user["isAnonymous"] === true) return
    if (await context.context.getPlugin("two-factor")?.shouldRequireTwoFactor(context)) return
    // The user is signed in by now.
    await moveLinked(anonymousId, user.id, context.context.logger).catch(() => undefined)
  })

  return {
    id: "tenure",
    $Infer,
    endpoints,
    // Sessions and accounts are deleted first. Without this, they would be gone and the user left.
    hooks: {
      before:
        onDelete === "keep"
          ? []
          : [
              {
                matcher: ({ path }) => path !== undefined && deletingPaths.has(path),
                handler: refuseWhileUnavailable,
              },
            ],
      after: [{ matcher: ({ context }) => Boolean(context.newSession), handler: moveKept }],
    },
    init: ({ logger }) => ({
      options: {
        databaseHooks: {
          user: {
            create: {
              before: refuseLinkWhileUnavailable,
              // The user exists by now, so the sign-up succeeds: reading a session tries again.
              after: async (user, context) => {
                await readAll(user, await anonymousIdOf(context)).catch((error: unknown) => {
                  logger.error(
                    `The memberships of the user ${user.id} will be granted later`,
                    error,
                  )
                })
              },
            },
            delete: {
              before: async (user, context) => {
                const linkedId = linkedIdOf(user, context)
                if (linkedId !== undefined) await moveLinked(user.id, linkedId, logger)
                if (onDelete === "keep") return
                await deleteAll(user.id, onDelete).catch((error: unknown) => {
                  logger.error(`The memberships of the user ${user.id} could not be deleted`, error)
                  throw refusal()
                })
              },
            },
          },
          session: { create: { before: refuseLinkWhileUnavailable } },
        },
      },
    }),
  }
}
