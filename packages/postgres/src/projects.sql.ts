/** What statements share that name a project. */

/** Whether a row is of the project with the id `$1`: all tables have the number of the project. */
export const isInProject = (schema: string): string =>
  `project_number = (SELECT number FROM ${schema}.projects WHERE id = $1::text)`
