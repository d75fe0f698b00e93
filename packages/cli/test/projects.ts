/** The bundled server, and projects on it that have a folder each. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect } from "vitest"
import { tenureWith } from "./in-process.ts"
import { startServer, token } from "./server.ts"

export const startProjects = async (settings: Readonly<Record<string, string>> = {}) => {
  const parent = mkdtempSync(join(tmpdir(), "tenure-projects-"))
  const server = await startServer(settings)
  let count = 0

  /** Makes a project and its folder. */
  const begin = async () => {
    count += 1
    const folder = join(parent, String(count))
    mkdirSync(folder)
    const environment = {
      TENURE_URL: server.url,
      TENURE_TOKEN: token,
      TENURE_PROJECT: `project-${count}`,
    }
    const tenure = tenureWith(environment)
    expect(await tenure("projects", "create", environment.TENURE_PROJECT)).toMatchObject({
      code: 0,
    })
    const pathOf = (name: string): string => join(folder, name)
    const fileWith = (name: string, ...lines: ReadonlyArray<string>): string => {
      writeFileSync(pathOf(name), lines.join("\n"))
      return pathOf(name)
    }
    return { folder, environment, tenure, pathOf, fileWith }
  }

  return {
    url: server.url,
    begin,
    stop: async () => {
      await server.stop()
      rmSync(parent, { recursive: true })
    },
  }
}

/** Has them be there while the tests of a file run. */
export const useProjects = () => {
  let projects: Awaited<ReturnType<typeof startProjects>> | undefined
  const started = () => {
    if (projects === undefined) throw new TypeError("The server has not started.")
    return projects
  }
  beforeAll(async () => {
    projects = await startProjects()
  })
  afterAll(() => projects?.stop())
  return { begin: () => started().begin(), url: () => started().url }
}
