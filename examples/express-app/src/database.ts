/** The backend's own SQLite database: people, clubs, sessions and payments. */

import { DatabaseSync, type SQLOutputValue } from "node:sqlite"
import type { Person } from "./person.ts"
import { prepareTables } from "./tables.ts"

/** A club. Its id is also its Tenure project's id. */
export interface Club {
  readonly id: string
  readonly title: string
}

/** A member's payment for a year. */
export interface Payment {
  /** The same in every notification about the payment. */
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
  throw new TypeError("invalid row in the table people")
}

const readClub = ({ id, title }: Row): Club => {
  if (typeof id === "string" && typeof title === "string") return { id, title }
  throw new TypeError("invalid row in the table clubs")
}

const preparePeople = (database: DatabaseSync) => {
  const byName = database.prepare("SELECT * FROM people WHERE name = ?")
  return {
    /** Returns the person with a name. */
    findPerson: (name: string): Person | undefined => byName.all(name).map(readPerson)[0],
  }
}

const prepareClubs = (database: DatabaseSync) => {
  const all = database.prepare("SELECT * FROM clubs ORDER BY id")
  const ofPerson = database.prepare(
    "SELECT clubs.* FROM clubs JOIN admins ON club_id = id WHERE person = ? ORDER BY id",
  )
  return {
    /** Returns all clubs. */
    clubs: (): ReadonlyArray<Club> => all.all().map(readClub),
    /** Returns a person's clubs. */
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
    /** Adds a session for one week. */
    addSession: (token: string, { name }: Person): void => {
      removeOld.run()
      add.run(token, name)
    },
    /** Removes a session. */
    removeSession: (token: string): void => void remove.run(token),
    /** Returns a session's person. */
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
    /** Whether a payment is recorded. */
    hasPayment: (id: string): boolean => byId.get(id) !== undefined,
    /** Records a payment, unless it is recorded already. */
    addPayment: (payment: Payment): void => void add.run({ ...payment }),
  }
}

/** Opens the database in a file, or in memory if the file is `:memory:`. */
export const openDatabase = (file: string) => {
  // Waits while another process writes to the file, for example during a restart.
  const database = new DatabaseSync(file, { timeout: 5_000 })
  prepareTables(database)
  return {
    ...preparePeople(database),
    ...prepareClubs(database),
    ...prepareSessions(database),
    ...preparePayments(database),
    /** Closes the database. */
    close: (): void => database.close(),
  }
}

/** The database. */
export type Database = ReturnType<typeof openDatabase>
