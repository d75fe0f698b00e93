/** What the GitHub workflows may do, and whose code they run. */

import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { filesOf, read } from "./examples.ts"

interface Step {
  readonly run?: string
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, { readonly steps?: ReadonlyArray<Step> }>>
}

describe.each(await filesOf(".github/workflows/*"))("the workflow %s", (file) => {
  const text = read(file)
  const { jobs, permissions }: Workflow = parse(text)

  it("names actions by their commit, and says which version that is", () => {
    for (const [, name] of text.matchAll(/^\s*(?:- )?uses: (?!\.\/)(.*)$/gm)) {
      expect(name).toMatch(/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
    }
  })

  it("may only read, where no job needs more", () => {
    expect(permissions).toEqual({ contents: "read" })
  })

  it("has no secret, and puts nothing that a stranger chooses into a script", () => {
    expect(text).not.toMatch(/\bsecrets\b|pull_request_target/)
    const scripts = Object.values(jobs).flatMap(({ steps = [] }) =>
      steps.map(({ run = "" }) => run),
    )
    for (const script of scripts) expect(script).not.toMatch(/\$\{\{ *github\.(event|head_ref)/)
  })
})
