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

/**
 * What a bundler that splits code loads only when it is used: documentation, metrics, traces, connections by
 * WebSocket, announcements of ends and how many a change sets off.
 */
const later = [
  "*/document.generated.ts",
  "*/html.ts",
  "*/asyncapi.ts",
  "*/metering.ts",
  "*/spans.ts",
  "*/open-telemetry.ts",
  "*/realtime.ts",
  "*/expiry-sweeper.ts",
  "*/foresight.ts",
]

const atStart = { ...options, ignore: [...options.ignore, ...later] }

export default [
  {
    ...atStart,
    name: "core, memory, express",
    path: "packages/lab/benchmark/weight/express.ts",
    limit: "132.2 kB",
  },
  {
    ...atStart,
    name: "the same, imported from tenure",
    path: "packages/lab/benchmark/weight/tenure.ts",
    limit: "132.2 kB",
  },
  {
    ...atStart,
    name: "core, memory, fetch",
    path: "packages/lab/benchmark/weight/worker.ts",
    limit: "130.9 kB",
  },
  {
    ...options,
    name: "core, memory, fetch, with all that is loaded later",
    path: "packages/lab/benchmark/weight/worker.ts",
    limit: "184.7 kB",
  },
  {
    ...options,
    name: "console, in a host that has the core",
    path: "packages/console/src/index.ts",
    ignore: ["@tenure/core", "effect"],
    limit: "66.8 kB",
  },
  {
    ...options,
    name: "client",
    path: "packages/client/src/index.ts",
    limit: "8.3 kB",
  },
]
