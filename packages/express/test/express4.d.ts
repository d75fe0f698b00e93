/** Express 4 has no types. What the tests use of it has the same types in Express 5. */
declare module "express4" {
  import express from "express"

  export default express
}
