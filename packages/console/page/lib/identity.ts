/** Who uses the page, and what they may do. */

import type { Identity } from "@tenure/client"
import { createContext } from "preact"
import { useContext } from "preact/hooks"

const roles = ["client", "operator", "admin"]

/** The user, for all screens. */
export const Who = createContext<Identity>({
  key_id: "",
  role: "client",
  projects: [],
  read_only: true,
})

/** Tells whether the user has a role, or one that may more. */
export const covers = ({ role }: Identity, needed: Identity["role"]): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed)

/** Tells whether the user may see what needs a role. */
export const useSees = (needed: Identity["role"]): boolean => covers(useContext(Who), needed)

/** Tells whether the user may make changes that need a role. */
export const useMay = (needed: Identity["role"]): boolean => {
  const who = useContext(Who)
  return covers(who, needed) && !who.read_only
}

/** Tells whether the user may see what belongs to no project: the status of the server, and its audit trail. */
export const seesAll = (who: Identity): boolean => covers(who, "admin") && who.projects === "all"
