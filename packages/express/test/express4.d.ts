/** Express 4 has no types. The API in the tests has the same types in Express 5. */
declare module "express4" {
  import express from "express"

  export default express
}
