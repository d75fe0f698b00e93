/** What a host's bundle gains, minified and compressed, and the most that it may be. */
const options = {
  gzip: true,
  // Express is the host's own.
  ignore: ["express"],
  modifyEsbuildConfig: (config) => ({
    ...config,
    conditions: ["@tenure/source"],
    format: "esm",
    platform: "node",
    target: "node22",
  }),
}

export default [
  {
    ...options,
    name: "core, memory, express",
    path: "packages/benchmark/src/weight/express.ts",
    limit: "72 kB",
  },
  {
    ...options,
    name: "core, memory, fetch",
    path: "packages/benchmark/src/weight/worker.ts",
    limit: "72 kB",
  },
  {
    ...options,
    name: "client",
    path: "packages/client/src/index.ts",
    limit: "6 kB",
  },
]
