/** The backend's sessions, in an `HttpOnly`, `SameSite` cookie. */

import { randomUUID } from "node:crypto"
import type { Request, RequestHandler, Response } from "express"
import type { Database } from "./database.ts"
import type { Person } from "./person.ts"

const tokenOf = (request: Request): string =>
  /(?:^|; )session=([0-9a-f-]{36})(?:;|$)/.exec(request.get("cookie") ?? "")?.[1] ?? ""

/** Starts a session, and sets its cookie. */
export const logIn = (database: Database, response: Response, person: Person): void => {
  const token = randomUUID()
  database.addSession(token, person)
  response.cookie("session", token, { httpOnly: true, sameSite: "strict" })
}

/** Ends a request's session, and clears its cookie. */
export const logOut = (database: Database, request: Request, response: Response): void => {
  database.removeSession(tokenOf(request))
  response.clearCookie("session")
}

/** Returns a request's person, or `undefined` if nobody is logged in. */
export const personOf = (database: Database, request: Request): Person | undefined =>
  database.findPersonOfSession(tokenOf(request))

/** Returns middleware to answer 401 if nobody is logged in. */
export const loggedIn =
  (database: Database): RequestHandler =>
  (request, response, next) => {
    if (personOf(database, request) === undefined) response.sendStatus(401)
    else next()
  }
