/** The backend's own database, in SQLite: people, clubs, sessions and payments. */

import { DatabaseSync, type SQLOutputValue } from "node:sqlite"
import type { Person } from "./person.ts"
import { prepareTables } from "./tables.ts"

/** A club, whose id is a project's of Tenure. */
export interface Club {
  readonly id: string
  readonly title: string
}

/** A member has paid for a year. */
export interface Payment {
  /** The same, however often the payment is told of. */
  readonly id: string
  readonly clubId: string
  readonly userId: string
  readonly year: number
}

type Row = Readonly<Record<string, SQLOutputValue>>

const readPerson = ({ name, password_hash: passwordHash, salt }: Row): Person => {
  if (typeof name === "string" && typeof salt === "string" && passwordHash instanceof Uint8Array) {
    return { name, salt, passwordHash }
  }
  throw new TypeError("this row is no person")
}

const readClub = ({ id, title }: Row): Club => {
  if (typeof id === "string" && typeof title === "string") return { id, title }
  throw new TypeError("this row is no club")
}

const preparePeople = (database: DatabaseSync) => {
  const byName = database.prepare("SELECT * FROM people WHERE name = ?")
  return {
    /** Finds somebody by name. */
    findPerson: (name: string): Person | undefined => byName.all(name).map(readPerson)[0],
  }
}

const prepareClubs = (database: DatabaseSync) => {
  const all = database.prepare("SELECT * FROM clubs ORDER BY id")
  const ofPerson = database.prepare(
    "SELECT clubs.* FROM clubs JOIN admins ON club_id = id WHERE person = ? ORDER BY id",
  )
  return {
    /** All clubs. */
    clubs: (): ReadonlyArray<Club> => all.all().map(readClub),
    /** The clubs that somebody runs. */
    clubsOf: ({ name }: Person): ReadonlyArray<Club> => ofPerson.all(name).map(readClub),
  }
}

const prepareSessions = (database: DatabaseSync) => {
  const add = database.prepare(
    `INSERT INTO sessions (token, person, expires_at)
     VALUES (?, ?, unixepoch('now', '+7 days'))`,
  )
  const remove = database.prepare("DELETE FROM sessions WHERE token = ?")
  const removeOld = database.prepare("DELETE FROM sessions WHERE expires_at <= unixepoch()")
  const person = database.prepare(
    `SELECT people.* FROM people JOIN sessions ON person = name
     WHERE token = ? AND expires_at > unixepoch()`,
  )
  return {
    /** Keeps a session for a week. */
    addSession: (token: string, { name }: Person): void => {
      removeOld.run()
      add.run(token, name)
    },
    /** Forgets a session. */
    removeSession: (token: string): void => void remove.run(token),
    /** Finds whose session it is. */
    findPersonOfSession: (token: string): Person | undefined =>
      person.all(token).map(readPerson)[0],
  }
}

const preparePayments = (database: DatabaseSync) => {
  const byId = database.prepare("SELECT 1 FROM payments WHERE id = ?")
  const add = database.prepare(
    `INSERT INTO payments (id, club_id, user_id, year)
     VALUES ($id, $clubId, $userId, $year) ON CONFLICT (id) DO NOTHING`,
  )
  return {
    /** Tells whether a payment is known. */
    hasPayment: (id: string): boolean => byId.get(id) !== undefined,
    /** Notes a payment; one that is known already stays as it is. */
    addPayment: (payment: Payment): void => void add.run({ ...payment }),
  }
}

/** Opens the database in a file, or in memory where that is `:memory:`. */
export const openDatabase = (file: string) => {
  // Another process may be writing to the file, such as this backend's predecessor.
  const database = new DatabaseSync(file, { timeout: 5_000 })
  prepareTables(database)
  return {
    ...preparePeople(database),
    ...prepareClubs(database),
    ...prepareSessions(database),
    ...preparePayments(database),
    /** Closes it; nothing may be asked of it then. */
    close: (): void => database.close(),
  }
}

/** The database. */
export type Database = ReturnType<typeof openDatabase>
