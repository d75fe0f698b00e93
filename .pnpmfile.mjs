/** Leaves the condition for sources out of the manifests that are published: the tarballs have none. */

const withoutSources = (paths) => {
  if (paths === null) return null
  const { "@tenure/source": _, ...published } = paths
  return published
}

const beforePacking = (manifest) => ({
  ...manifest,
  exports: Object.fromEntries(
    Object.entries(manifest.exports).map(([path, paths]) => [path, withoutSources(paths)]),
  ),
})

export const hooks = { beforePacking }
