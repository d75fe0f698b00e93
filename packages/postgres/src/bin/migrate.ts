#!/usr/bin/env node
/** Creates the tables, or brings them up to date: `DATABASE_URL=postgres://… tenure-migrate [schema]`. */

import { PgClient } from "@effect/sql-pg"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { migrate } from "../index.ts"

const url = process.env["DATABASE_URL"]
const schema = process.argv[2]

const end = (message: string, code: number): never => {
  ;(code === 0 ? process.stdout : process.stderr).write(`${message}\n`)
  process.exit(code)
}

if (url === undefined) {
  end("DATABASE_URL is not set; it is such as postgres://user:password@host:5432/database", 1)
} else {
  const applied = await Effect.runPromise(
    migrate({ schema }).pipe(
      Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 1 })),
    ),
  ).catch((fault: unknown) => end(String(fault), 1))
  end(applied.length === 0 ? "Nothing to do." : `Applied: ${applied.join(", ")}.`, 0)
}
