/** Tenure mounted in Express. */

import { createServer } from "node:http"
import { membershipMiddleware } from "@tenure/express"
import express from "express"
import { makeFilled } from "./filled.ts"
import { listen } from "./server.ts"

const app = express()
app.use(membershipMiddleware(await makeFilled()))
listen(createServer(app))
