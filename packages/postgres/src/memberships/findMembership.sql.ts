import { millisOf } from "../connection/results.ts"

/** Returns a membership with its effective end date, if it exists. */
export const findMembership = (schema: string): string => `
  SELECT user_id, ${millisOf("end_date")} AS end_date FROM ${schema}.memberships_current
  WHERE project_id = $1::text AND user_id = $2::text
`
