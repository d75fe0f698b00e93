/** A project's settings and numbers. */

import type { Project } from "@tenure/client"
import { api } from "../lib/api.ts"
import { type Loading, useLoad } from "./load.tsx"

/** Loads a project. */
export const useProject = (project_id: string): Loading<Project> =>
  useLoad(async (signal) => (await api.projects.get({ project_id }, { signal })).data, project_id)
