/**
 * How changelogs are written: each change as its author described it. Commits are left out, because rebasing renames
 * them, and dependencies, because all packages have the same version.
 */
export default {
  getReleaseLine: async ({ summary }) =>
    `- ${summary.replaceAll("\n", "\n  ").replaceAll(/^ +$/gm, "")}`,
  getDependencyReleaseLine: async () => "",
}
