/**
 * Removes rows of projects that were deleted, by calling the function `forget_projects` of the migrations,
 * where it is described. Returns one row if there may be more.
 */
export const forgetProjects = (schema: string): string =>
  `SELECT * FROM ${schema}.forget_projects(1000)`
