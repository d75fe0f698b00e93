/** Express 4 has no types. What is used has the same types in Express 5. */
declare module "express4" {
  import express from "express"

  export default express
}
