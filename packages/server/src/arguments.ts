/** The command line of the server, which has no arguments but those that ask about it. */

import { version } from "@tenure/core/internal"
import { variables } from "./settings.ts"

/** A text to print in place of running the server. */
export interface PrintedText {
  readonly text: string
  /** 0 if it was asked for, and 2 if the arguments are wrong. */
  readonly code: 0 | 2
}

const width = 78

/** Divides words into lines. */
const wrapped = (words: ReadonlyArray<string>): string => {
  const lines = [""]
  for (const word of words) {
    const line = lines.at(-1) ?? ""
    if (line.length + word.length > width) lines.push(`  ${word}`)
    else lines[lines.length - 1] = line === "" ? `  ${word}` : `${line} ${word}`
  }
  return lines.join("\n")
}

const usage = [
  "Usage: node server.mjs [--help] [--version]",
  "",
  "Runs Tenure until it gets SIGTERM, SIGINT or SIGHUP. Without settings, it listens on",
  "http://127.0.0.1:3000, and keeps everything in the folder ./data.",
  "",
  "Settings are variables of the environment, such as PORT=4000:",
  "",
  wrapped(Object.values(variables).map(({ name }) => name)),
  "",
  "https://github.com/tenure/tenure/blob/main/docs/options.md describes them.",
].join("\n")

/** Returns what to print for arguments, or `undefined` to run the server. */
export const readArguments = (args: ReadonlyArray<string>): PrintedText | undefined => {
  const [first] = args
  if (first === undefined) return undefined
  if (args.some((one) => one === "--help" || one === "-h")) return { text: usage, code: 0 }
  if (args.length === 1 && (first === "--version" || first === "-v"))
    return { text: `tenure ${version}`, code: 0 }
  return { text: `The server takes no argument ${JSON.stringify(first)}.\n\n${usage}`, code: 2 }
}
