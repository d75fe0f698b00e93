/** A client of Tenure's HTTP API. */
export type { CallOptions } from "./calls.ts"
export { type ClientOptions, createClient } from "./createClient.ts"
export type * from "./operations.ts"
export type { List } from "./pages.ts"
export type { Counted, Page, Success } from "./response.ts"
export { type Code, isTenureError, type Problem, TenureError } from "./TenureError.ts"
