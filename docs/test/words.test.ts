/** Comments use few words from which hard sentences are built: "of" in chains, and relative pronouns. */

import { describe, expect, it } from "vitest"
import { read } from "./examples.ts"
import { modules, packageOf } from "./modules.ts"

/** How many words comments have, and how many make sentences hard. */
interface WordCount {
  readonly words: number
  readonly of: number
  readonly relative: number
}

// The formatter puts comments on their own lines.
const comment = /^[ \t]*(?:\/\*.*?\*\/|\/\/[^\n]*)/gms

/** Returns a comment's sentences, with a placeholder for code. */
const proseOf = (text: string): string =>
  text
    .replaceAll(/^\s*(?:\/\*+|\*\/?|\/\/)/gm, "")
    .replaceAll(/```.*?```/gs, "")
    .replaceAll(/`[^`]*`/g, "X")
    .replaceAll(/@\w+/g, "")

const countOf = (text: string, words: RegExp): number => [...text.matchAll(words)].length

/** Counts the words in a source's comments. */
const countWords = (source: string): WordCount => {
  const text = [...source.matchAll(comment)].map(([found]) => proseOf(found)).join("\n")
  return {
    words: countOf(text, /[a-z][a-z'’-]*/gi),
    of: countOf(text, /\bof\b/gi),
    relative: countOf(text, /\b(?:that|which|who|whom|whose|whoever|what|those|where)\b/gi),
  }
}

/** Counts the words in each package's comments. Nobody writes those in generated modules. */
const wordsByPackage = (): ReadonlyMap<string, WordCount> => {
  const texts = new Map<string, string>()
  for (const path of modules) {
    if (/\.generated\.ts$|client\/src\/operations\.ts$/.test(path)) continue
    const name = packageOf(path)
    texts.set(name, `${texts.get(name) ?? ""}${read(path)}\n`)
  }
  return new Map([...texts].map(([name, text]) => [name, countWords(text)]))
}

/** Returns how many in 1,000 words a count is, to a tenth. */
const perThousand = (count: number, words: number): number =>
  Math.round((count / words) * 10_000) / 10

interface Limits {
  readonly of: number
  readonly relative: number
}

/** The limits for 1,000 words. */
const limits: Limits = { of: 20, relative: 20 }

/** Packages above the limits, and how far above they may be: only ever lower these, and then remove them. */
const above: Readonly<Record<string, Limits>> = {
  postgres: { of: 25, relative: 34 },
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

/** Doc comments that an empty line follows. */
const alone = /^\/\*\*(?:(?!\*\/).)*\*\/\n\n/gms

it("no doc comment but the first of a file stands alone, and every file begins with one", () => {
  const wrong = modules
    // Files of one line pass on a package.
    .filter((path) => !path.endsWith(".generated.ts") && packageOf(path) !== "tenure")
    .flatMap((path) => {
      const text = read(path)
      const start = text.startsWith("#!") ? text.indexOf("\n") + 1 : 0
      const headings = [...text.matchAll(alone)].filter(({ index }) => index > start)
      return text.startsWith("/**", start) && headings.length === 0 ? [] : [path]
    })
  expect(wrong).toEqual([])
})
