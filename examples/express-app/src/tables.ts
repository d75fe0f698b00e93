/** The tables of the backend's database, and their first rows. */

import type { DatabaseSync } from "node:sqlite"
import { makePerson } from "./person.ts"

const tables = `
  CREATE TABLE IF NOT EXISTS people (
    name TEXT PRIMARY KEY,
    salt TEXT NOT NULL,
    password_hash BLOB NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE IF NOT EXISTS clubs (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE IF NOT EXISTS admins (
    person TEXT NOT NULL REFERENCES people,
    club_id TEXT NOT NULL REFERENCES clubs,
    PRIMARY KEY (person, club_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE IF NOT EXISTS sessions (
    token TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE IF NOT EXISTS payments (
    id TEXT PRIMARY KEY,
    club_id TEXT NOT NULL REFERENCES clubs,
    user_id TEXT NOT NULL,
    year INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`

const clubsAndAdmins = `
  INSERT INTO clubs (id, title) VALUES
    ('chess', 'Chess club'), ('rowing', 'Rowing club'), ('sailing', 'Sailing club');
  INSERT INTO admins (person, club_id) VALUES
    ('alice', 'chess'), ('alice', 'rowing'), ('bob', 'sailing');
`

const fill = (database: DatabaseSync): void => {
  const add = database.prepare(
    "INSERT INTO people (name, salt, password_hash) VALUES ($name, $salt, $passwordHash)",
  )
  add.run({ ...makePerson("alice", "wonderland") })
  add.run({ ...makePerson("bob", "builder") })
  database.exec(clubsAndAdmins)
}

/** Creates missing tables, and fills them if they are empty. */
export const prepareTables = (database: DatabaseSync): void => {
  // In one transaction, so that a process stopping half-way leaves nothing behind.
  database.exec("BEGIN IMMEDIATE")
  database.exec(tables)
  if (database.prepare("SELECT 1 FROM people").get() === undefined) fill(database)
  database.exec("COMMIT")
}
