/** Creates a project, unless it exists. */
export const createProject = (schema: string): string => `
  INSERT INTO ${schema}.projects (id) VALUES ($1::text) ON CONFLICT DO NOTHING
`

/** Reads a membership. */
export const findMembership = (schema: string): string => `
  SELECT end_date FROM ${schema}.memberships_current
  WHERE project_id = $1::text AND user_id = $2::text
`

/** Reads a page of memberships: one empty row if there are none, none if there is no project. */
export const listMemberships = (schema: string): string => `
  SELECT m.user_id, m.end_date
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT user_id, end_date FROM ${schema}.memberships_current
    WHERE project_id = p.id AND user_id > $2::text
    ORDER BY user_id
    LIMIT $3::integer
  ) m ON true
  WHERE p.id = $1::text
  ORDER BY m.user_id
`

const auditRows = (schema: string, condition: string): string => `
  SELECT a.user_id, a.action, a.from_date, a.to_date, a.at, a.request_id, a.key_id
  FROM ${schema}.projects p
  LEFT JOIN LATERAL (
    SELECT * FROM ${schema}.audit
    WHERE ${condition}
    ORDER BY id DESC
    LIMIT $2::integer
  ) a ON true
  WHERE p.id = $1::text
  ORDER BY a.id DESC
`

/** Reads the audit trail of a project: one empty row if it has none, none if there is no project. */
export const projectHistory = (schema: string): string => auditRows(schema, "project_id = p.id")

/** The same of one user. */
export const userHistory = (schema: string): string =>
  auditRows(schema, "project_id = p.id AND user_id = $3::text")
