/** The backend's own database: people, clubs and payments. Here, maps stand in for it. */

import { randomUUID, scryptSync, timingSafeEqual } from "node:crypto"

/** Somebody who runs clubs. */
export interface Person {
  readonly name: string
  readonly salt: string
  readonly passwordHash: Buffer
}

/** A club, whose id is a project's of Tenure. */
export interface Club {
  readonly id: string
  readonly title: string
  /** The names of the people who run it. */
  readonly admins: ReadonlySet<string>
}

/** A member has paid for a year. */
export interface Payment {
  /** The same, however often the payment is told of. */
  readonly id: string
  readonly clubId: string
  readonly userId: string
  readonly year: number
}

const hash = (password: string, salt: string): Buffer => scryptSync(password, salt, 32)

const makePerson = (name: string, password: string): Person => {
  const salt = randomUUID()
  return { name, salt, passwordHash: hash(password, salt) }
}

/** Tells whether a password is somebody's. */
export const hasPassword = ({ passwordHash, salt }: Person, password: string): boolean =>
  timingSafeEqual(passwordHash, hash(password, salt))

const somePeople = [makePerson("alice", "wonderland"), makePerson("bob", "builder")]

const someClubs: ReadonlyArray<Club> = [
  { id: "chess", title: "Chess club", admins: new Set(["alice"]) },
  { id: "rowing", title: "Rowing club", admins: new Set(["alice"]) },
  { id: "sailing", title: "Sailing club", admins: new Set(["bob"]) },
]

/** Makes a database with people, clubs and no payments. */
export const makeDatabase = () => ({
  people: new Map(somePeople.map((person) => [person.name, person])),
  clubs: new Map(someClubs.map((club) => [club.id, club])),
  payments: new Map<string, Payment>(),
})

/** The database. */
export type Database = ReturnType<typeof makeDatabase>

/** The clubs that somebody runs. */
export const clubsOf = ({ clubs }: Database, { name }: Person): ReadonlyArray<Club> =>
  [...clubs.values()].filter(({ admins }) => admins.has(name))
