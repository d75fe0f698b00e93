/** What is wrong with a file, in words for people. */

import type { PlatformError } from "effect/PlatformError"

const problemOf = ({ reason }: PlatformError): string => {
  switch (reason._tag) {
    case "NotFound":
      return "no such file or folder"
    case "PermissionDenied":
      return "permission denied, for it or for its folder"
    case "BadResource":
      return "it is a folder, or its path leads through a file"
    default:
      return reason.cause instanceof Error ? reason.cause.message : reason.message
  }
}

/** Says why a file cannot be used. @param path - that of the file, or `-` for standard input */
export const fileProblem = (path: string, error: PlatformError): string =>
  `${path === "-" ? "Standard input" : `The file ${path}`} cannot be used: ${problemOf(error)}.`
