/** The Node versions the command supports. Imports nothing, to load on any version. */

/** The oldest version. */
const oldest = { major: 22, minor: 19 } as const

/**
 * Returns a message if a Node version is too old, otherwise `undefined`.
 *
 * @param version - as in `process.versions.node`
 */
export const refusal = (version: string): string | undefined => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const isSupported = major > oldest.major || (major === oldest.major && minor >= oldest.minor)
  return isSupported
    ? undefined
    : `tenure needs Node ${oldest.major}.${oldest.minor} or newer. This is Node ${version}.`
}
