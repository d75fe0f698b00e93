/**
 * The module `node:http`. An `import` of it also reads its export `WebSocket`, which loads the `fetch` of
 * Node: 20 ms and 10 MB at the start of a host.
 */
export const http = process.getBuiltinModule("node:http")
