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

/** What a bundler that splits code loads only for documentation, metrics and traces, when they are asked for. */
const later = [
  "*/docs/document.ts",
  "*/docs/Html.ts",
  "*/docs/AsyncApi.ts",
  "*/Metering.ts",
  "*/Spans.ts",
  "*/OpenTelemetry.ts",
]

const atStart = { ...options, ignore: [...options.ignore, ...later] }

export default [
  {
    ...atStart,
    name: "core, memory, express",
    path: "packages/benchmark/src/weight/express.ts",
    limit: "90 kB",
  },
  {
    ...atStart,
    name: "the same, imported from tenure",
    path: "packages/benchmark/src/weight/tenure.ts",
    limit: "90 kB",
  },
  {
    ...atStart,
    name: "core, memory, fetch",
    path: "packages/benchmark/src/weight/worker.ts",
    limit: "88.5 kB",
  },
  {
    ...options,
    name: "core, memory, fetch, with documentation, metrics and traces",
    path: "packages/benchmark/src/weight/worker.ts",
    limit: "121 kB",
  },
  {
    ...options,
    name: "console, in a host that has the core",
    path: "packages/console/src/index.ts",
    ignore: ["@tenure/core", "effect"],
    limit: "30 kB",
  },
  {
    ...options,
    name: "client",
    path: "packages/client/src/index.ts",
    limit: "6 kB",
  },
]
