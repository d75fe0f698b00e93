/** The user and their permissions. */

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

/** Tells whether the user's role includes another role. */
export const covers = ({ role }: Identity, needed: Identity["role"]): boolean =>
  roles.indexOf(role) >= roles.indexOf(needed)

/** Tells whether the user may see data for a role. */
export const useSees = (needed: Identity["role"]): boolean => covers(useContext(Who), needed)

/** Tells whether the user may make changes for a role. */
export const useMay = (needed: Identity["role"]): boolean => {
  const who = useContext(Who)
  return covers(who, needed) && !who.read_only
}

/** Tells whether the user may see data outside projects: the server's status and audit trail. */
export const seesAll = (who: Identity): boolean => covers(who, "admin") && who.projects === "all"
