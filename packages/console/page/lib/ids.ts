/** Ids that users type. */

/** The pattern for ids of users, and for how they begin. */
export const userId = /^[!-~]{1,128}$/
