/** Creates a project, unless it exists. */
export const createProject = (schema: string): string => `
  INSERT INTO ${schema}.projects (id) VALUES ($1::text) ON CONFLICT DO NOTHING
`
