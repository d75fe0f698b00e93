/** The words in the comments of the sources. */

import { modules, packageOf, textOf } from "./modules.ts"

/** How many words comments have, and how many of these make sentences hard. */
export interface WordCount {
  readonly words: number
  readonly of: number
  readonly relative: number
}

// The formatter puts comments on lines of their own.
const comment = /^[ \t]*(?:\/\*.*?\*\/|\/\/[^\n]*)/gms

/** Returns the sentences of a comment, with a placeholder for code. */
const proseOf = (text: string): string =>
  text
    .replaceAll(/^\s*(?:\/\*+|\*\/?|\/\/)/gm, "")
    .replaceAll(/```.*?```/gs, "")
    .replaceAll(/`[^`]*`/g, "X")
    .replaceAll(/@\w+/g, "")

const countOf = (text: string, words: RegExp): number => [...text.matchAll(words)].length

/** Counts the words in the comments of a source. */
export const countWords = (source: string): WordCount => {
  const text = [...source.matchAll(comment)].map(([found]) => proseOf(found)).join("\n")
  return {
    words: countOf(text, /[a-z][a-z'’-]*/gi),
    of: countOf(text, /\bof\b/gi),
    relative: countOf(text, /\b(?:that|which|who|whom|whose|whoever|what|those|where)\b/gi),
  }
}

/** Counts the words in the comments of each package. Nobody writes those of generated modules. */
export const wordsByPackage = (): ReadonlyMap<string, WordCount> => {
  const texts = new Map<string, string>()
  for (const path of modules) {
    if (/\.generated\.ts$|client\/src\/operations\.ts$/.test(path)) continue
    const name = packageOf(path)
    texts.set(name, `${texts.get(name) ?? ""}${textOf(path)}\n`)
  }
  return new Map([...texts].map(([name, text]) => [name, countWords(text)]))
}

/** Returns how many in 1,000 words a count is, to a tenth. */
export const perThousand = (count: number, words: number): number =>
  Math.round((count / words) * 10_000) / 10
