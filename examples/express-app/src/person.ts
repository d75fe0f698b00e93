/** People who run clubs, and their passwords. */

import { randomUUID, scryptSync, timingSafeEqual } from "node:crypto"

/** A person who runs clubs. */
export interface Person {
  readonly name: string
  readonly salt: string
  readonly passwordHash: Uint8Array
}

const hash = (password: string, salt: string): Uint8Array => scryptSync(password, salt, 32)

/** Makes a person with a password. */
export const makePerson = (name: string, password: string): Person => {
  const salt = randomUUID()
  return { name, salt, passwordHash: hash(password, salt) }
}

/** Checks a person's password. */
export const hasPassword = ({ passwordHash, salt }: Person, password: string): boolean =>
  timingSafeEqual(passwordHash, hash(password, salt))
