/** Comments use few words from which hard sentences are built: "of" in chains, and relative pronouns. */

import { describe, expect, it } from "vitest"
import { countWords, perThousand, wordsByPackage } from "./words.ts"

interface Limits {
  readonly of: number
  readonly relative: number
}

/** The limits for 1,000 words. */
const limits: Limits = { of: 25, relative: 20 }

/** Packages above the limits, and how far above they may be: only ever lower these, and then remove them. */
const above: Readonly<Record<string, Limits>> = {
  core: { of: 30, relative: 31 },
  postgres: { of: 53, relative: 55 },
}

it("counts words in sentences, and not in code", () => {
  const text = "/** The end of `a of b`, which\n * counts. */\nconst of = 1\n// What of it?\n"
  expect(countWords(text)).toEqual({ words: 9, of: 2, relative: 2 })
})

describe("1,000 words in the comments of a package have few of them:", () => {
  it.each([...wordsByPackage()])("%s", (name, { of, relative, words }) => {
    const most = above[name] ?? limits
    expect(perThousand(of, words), "of").toBeLessThanOrEqual(most.of)
    expect(perThousand(relative, words), "relative").toBeLessThanOrEqual(most.relative)
  })
})
