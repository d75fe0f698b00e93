/** Roles: what the holder of an API key, or whom the host identified, may do. */

/** Every role. Each may also do what those before it may. */
export const roles = ["client", "operator", "admin"] as const

/**
 * A role.
 *
 * - `client`: sets end dates, manages webhooks and reads memberships, in its projects
 * - `operator`: everything in its projects
 * - `admin`: also API keys and the projects themselves
 */
export type Role = (typeof roles)[number]

/** Tells whether a role may do what another one may. */
export const covers = (role: Role, needed: Role): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed)
