/** The command line as people write it. */

const projectFlags = new Set(["--project", "-p"])

/** Moves the project behind the words of the command, as the parser expects it. */
const withProjectLast = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [words, project]: readonly [Array<string>, Array<string>] = [[], []]
  for (let index = 0; index < args.length; index++) {
    const [one = "", next] = args.slice(index, index + 2)
    if (one.startsWith("--project=")) project.push(one)
    else if (projectFlags.has(one) && next !== undefined) {
      project.push(one, next)
      index++
    } else words.push(one)
  }
  return [...words, ...project]
}

/**
 * Returns arguments as the parser takes them: with the project after the command, `help` and `version` as flags, and
 * the help of a group of commands in place of nothing.
 *
 * @param groups - commands without a function of their own
 */
export const readArguments = (
  args: ReadonlyArray<string>,
  groups: ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const [first = "", ...rest] = args
  if (first === "help") return [...rest, "--help"]
  if (first === "version" && rest.length === 0) return ["--version"]
  if (groups.includes(first) && rest.length === 0) return [first, "--help"]
  const end = args.indexOf("--")
  return end === -1
    ? withProjectLast(args)
    : [...withProjectLast(args.slice(0, end)), ...args.slice(end)]
}
