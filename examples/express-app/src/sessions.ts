/** The backend's own sessions: a cookie that no script can read, and no other site can have sent. */

import { randomUUID } from "node:crypto"
import type { Request, RequestHandler, Response } from "express"
import type { Person } from "./database.ts"

const sessions = new Map<string, Person>()

const tokenOf = (request: Request): string =>
  /(?:^|; )session=([0-9a-f-]{36})(?:;|$)/.exec(request.get("cookie") ?? "")?.[1] ?? ""

/** Starts a session. */
export const logIn = (response: Response, person: Person): void => {
  const token = randomUUID()
  sessions.set(token, person)
  response.cookie("session", token, { httpOnly: true, sameSite: "strict" })
}

/** Ends the session of a request. */
export const logOut = (request: Request, response: Response): void => {
  sessions.delete(tokenOf(request))
  response.clearCookie("session")
}

/** Who sends a request, if it is somebody who has logged in. */
export const personOf = (request: Request): Person | undefined => sessions.get(tokenOf(request))

/** Lets nobody by who has not logged in. */
export const loggedIn: RequestHandler = (request, response, next) => {
  if (personOf(request) === undefined) response.sendStatus(401)
  else next()
}
