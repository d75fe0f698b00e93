/** The backend's own sessions: a cookie that no script can read, and no other site can have sent. */

import { randomUUID } from "node:crypto"
import type { Request, RequestHandler, Response } from "express"
import type { Database } from "./database.ts"
import type { Person } from "./person.ts"

const tokenOf = (request: Request): string =>
  /(?:^|; )session=([0-9a-f-]{36})(?:;|$)/.exec(request.get("cookie") ?? "")?.[1] ?? ""

/** Starts a session. */
export const logIn = (database: Database, response: Response, person: Person): void => {
  const token = randomUUID()
  database.addSession(token, person)
  response.cookie("session", token, { httpOnly: true, sameSite: "strict" })
}

/** Ends the session of a request. */
export const logOut = (database: Database, request: Request, response: Response): void => {
  database.removeSession(tokenOf(request))
  response.clearCookie("session")
}

/** Who sends a request, if it is somebody who has logged in. */
export const personOf = (database: Database, request: Request): Person | undefined =>
  database.findPersonOfSession(tokenOf(request))

/** Lets nobody by who has not logged in. */
export const loggedIn =
  (database: Database): RequestHandler =>
  (request, response, next) => {
    if (personOf(database, request) === undefined) response.sendStatus(401)
    else next()
  }
