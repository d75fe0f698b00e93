/** Broken products: ways in which the feed must not read, to prove that the readers of a run notice. */

import type { Session } from "./world/database.ts"

/** A change to the function `read_feed`. */
export interface Broken {
  readonly name: string
  readonly part: string
  readonly by: string
}

/** All broken products. */
export const allBroken: ReadonlyArray<Broken> = [
  {
    name: "a feed that goes on from the greatest number",
    part: "xid = ANY (ARRAY(SELECT pg_snapshot_xip(base)))",
    by: "xid IS NULL",
  },
  {
    name: "a feed that skips what a page has no room for",
    part: "(SELECT count(*) FROM events)::integer",
    by: "0",
  },
]

/** Replaces a part of the function. */
export const breakFeed = async ({ query }: Session, { name, part, by }: Broken): Promise<void> => {
  const [row] = await query<{ readonly text: string }>(
    "SELECT pg_get_functiondef('tenure.read_feed'::regproc) AS text",
  )
  if (row?.text.includes(part) !== true) throw new Error(`read_feed cannot be made ${name}`)
  await query(row.text.replaceAll(part, by))
}
