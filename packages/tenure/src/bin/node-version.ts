/** The versions of Node that the command runs on. Imports nothing, so that it loads on any of them. */

/** The oldest version. */
const oldest = { major: 22, minor: 19 } as const

/**
 * Returns what to tell the user if a version of Node is too old, or `undefined` if it is not.
 *
 * @param version - as `process.versions.node` has it
 */
export const refusal = (version: string): string | undefined => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const isSupported = major > oldest.major || (major === oldest.major && minor >= oldest.minor)
  return isSupported
    ? undefined
    : `tenure needs Node ${oldest.major}.${oldest.minor} or newer. This is Node ${version}.`
}
