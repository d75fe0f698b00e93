/** How changelogs are written. */

import git from "@changesets/changelog-git"

export default {
  ...git,
  // All packages have the same version, so which of them others depend on is no news.
  getDependencyReleaseLine: async () => "",
}
