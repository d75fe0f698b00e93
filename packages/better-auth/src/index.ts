/** A plugin for Better Auth: memberships in the session, from sign-up to the user's deletion. */

import type { Tenure } from "@tenure/core"
import type { BetterAuthOptions, Session, User } from "better-auth"
import { APIError, createAuthMiddleware } from "better-auth/api"
import { customSession } from "better-auth/plugins"
import {
  type Deletion,
  type SessionMembership,
  type TrialEnd,
  deletions,
  makeMemberProjects,
} from "./member-projects.ts"

export type { SessionMembership, TrialEnd } from "./member-projects.ts"

/** The options for `membershipPlugin`. */
export interface MembershipPluginOptions<Options extends BetterAuthOptions = BetterAuthOptions> {
  /** The projects whose memberships are in the session: 1 to 10. Each costs a look-up whenever a session is read. */
  readonly projects: ReadonlyArray<string>
  /**
   * For how many days new users become members of each project, up to 3650; or a function returning the end date.
   * Default: they become no members.
   */
  readonly trial?: number | TrialEnd | undefined
  /**
   * Whether deleting a user ends the memberships (`"end"`), ends them and erases the user id in Tenure (`"erase"`), or
   * leaves them (`"keep"`). Default: `"end"`.
   */
  readonly onDelete?: Deletion | undefined
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
  readonly logger: { readonly error: (message: string, error: unknown) => void }
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
  }
}

const maxProjects = 10

const maxTrialDays = 3650

const dayMillis = 86_400_000

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
    message: "Memberships cannot be deleted now. Try again later",
  })

/** Reads the options. Throws a `TypeError` if one is invalid. */
const readOptions = ({
  onDelete = "end",
  projects,
  trial,
}: Pick<MembershipPluginOptions, "onDelete" | "projects" | "trial">) => {
  const count = new Set(projects).size
  if (count < 1 || count > maxProjects || count < projects.length) {
    throw new TypeError(`projects must be 1 to ${maxProjects} different ids`)
  }
  if (!deletions.includes(onDelete)) {
    throw new TypeError('onDelete must be "end", "erase" or "keep"')
  }
  if (typeof trial === "function" || trial === undefined) {
    return { onDelete, projects, trialEnd: trial ?? (() => undefined) }
  }
  if (!(trial > 0 && trial <= maxTrialDays)) {
    throw new TypeError(`trial must be days, at most ${maxTrialDays}, or a function`)
  }
  const trialEnd: TrialEnd = ({ createdAt }) =>
    new Date(new Date(createdAt).getTime() + Math.round(trial * dayMillis))
  return { onDelete, projects, trialEnd }
}

/**
 * Creates the plugin: sessions have the user's `memberships`. Throws a `TypeError` if an option is invalid.
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
  { options, ...given }: MembershipPluginOptions<Options>,
): MembershipPlugin<Options> => {
  const { onDelete, projects, trialEnd } = readOptions(given)
  const { deleteAll, readAll } = makeMemberProjects(tenure.memberships, projects, trialEnd)

  const { $Infer, endpoints } = customSession<MembershipSession<Options>, Options>(
    async ({ session, user }, { context }) => {
      const memberships = await readAll(user).catch((error: unknown) => {
        context.logger.error(`The memberships of the user ${user.id} could not be read`, error)
        return null
      })
      return { session, user, memberships }
    },
    options,
  )

  const refuseWhileUnavailable = createAuthMiddleware(async () => {
    if (!(await tenure.isReady())) {
      throw refusal()
    }
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
    },
    init: ({ logger }) => ({
      options: {
        databaseHooks: {
          user: {
            create: {
              // The user exists by now, so the sign-up succeeds: reading a session tries again.
              after: async (user) => {
                await readAll(user).catch((error: unknown) => {
                  logger.error(
                    `The memberships of the user ${user.id} will be granted later`,
                    error,
                  )
                })
              },
            },
            delete: {
              before: async ({ id }) => {
                if (onDelete === "keep") return
                await deleteAll(id, onDelete).catch((error: unknown) => {
                  logger.error(`The memberships of the user ${id} could not be deleted`, error)
                  throw refusal()
                })
              },
            },
          },
        },
      },
    }),
  }
}
