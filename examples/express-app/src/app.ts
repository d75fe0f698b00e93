/** The backend: routes to log in, and to manage clubs. */

import type { Tenure } from "@tenure/core"
import { UserId } from "@tenure/core/store"
import express from "express"
import type { ErrorRequestHandler, Express, Request } from "express"
import type { Club, Database, Payment } from "./database.ts"
import * as Log from "./log.ts"
import { membersApi, onPayment } from "./memberships.ts"
import { hasPassword } from "./person.ts"
import { logIn, logOut, loggedIn, personOf } from "./sessions.ts"

/** Returns the club in a request's path, if the logged-in person runs it. */
const clubOf = (database: Database, request: Request): Club | undefined => {
  const person = personOf(database, request)
  return person && database.clubsOf(person).find(({ id }) => id === request.params["club"])
}

/** Reads a payment from a request body. Returns `undefined` if it is invalid. */
const readPayment = (club: Club, body: unknown): Payment | undefined => {
  const { id, user_id: userId, year }: Readonly<Record<string, unknown>> = Object(body)
  return typeof id === "string" &&
    typeof userId === "string" &&
    UserId.is(userId) &&
    typeof year === "number" &&
    Number.isInteger(year) &&
    year > 2000 &&
    year < 3000
    ? { id, clubId: club.id, userId, year }
    : undefined
}

const onError: ErrorRequestHandler = (error, request, response, _next) => {
  Log.error(`${request.method} ${request.path}`, error)
  response.sendStatus(500)
}

/** Makes the backend. */
export const makeApp = (database: Database, tenure: Tenure): Express => {
  const app = express()
  const guard = loggedIn(database)
  app.use("/members", membersApi(tenure, database))
  app.use(express.json())

  app.post("/login", (request, response) => {
    const { name, password }: Readonly<Record<string, unknown>> = Object(request.body)
    const person = database.findPerson(String(name))
    if (person === undefined || !hasPassword(person, String(password))) {
      response.sendStatus(401)
      return
    }
    logIn(database, response, person)
    response.sendStatus(204)
  })

  app.post("/logout", (request, response) => {
    logOut(database, request, response)
    response.sendStatus(204)
  })

  app.get("/clubs", guard, (request, response) => {
    const person = personOf(database, request)
    response.json(person === undefined ? [] : database.clubsOf(person))
  })

  app.get("/clubs/:club/history", guard, async (request, response) => {
    const club = clubOf(database, request)
    if (club === undefined) response.sendStatus(404)
    else response.json(await tenure.memberships.history({ projectId: club.id }))
  })

  app.post("/clubs/:club/payments", guard, async (request, response) => {
    const club = clubOf(database, request)
    const payment = club && readPayment(club, request.body)
    if (payment === undefined) {
      response.sendStatus(club === undefined ? 404 : 422)
      return
    }
    if (!database.hasPayment(payment.id)) {
      await onPayment(tenure, payment)
      database.addPayment(payment)
    }
    response.sendStatus(204)
  })

  app.use(onError)
  return app
}
