/** Sends parts of a file, each until the server has applied it or refused lines of it. */

import type { CallOptions } from "@tenure/client"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Api, call } from "../../connection/Api.ts"
import { patiently } from "../../connection/patiently.ts"
import type { Failure } from "../../Failure.ts"
import type { Member, Refused } from "./Line.ts"
import { keyAfter, type Part, toLine } from "./Part.ts"

/** What became of a part. */
export interface Sent {
  readonly members: number
  /** How many of them an earlier run had sent already. */
  readonly repeated: number
  readonly refused: ReadonlyArray<Refused>
}

/** The lines of a part that the server has refused, by their places in it. */
const refusedOf = (members: ReadonlyArray<Member>, { lines }: Failure): ReadonlyArray<Refused> =>
  (lines ?? []).flatMap(({ line, message }) => {
    const member = members[line - 1]
    return member === undefined
      ? []
      : [{ _tag: "Refused", line: member.line, problem: message, given: toLine(member) }]
  })

const request = (project_id: string, members: ReadonlyArray<Member>, idempotencyKey: string) =>
  patiently(
    call(({ memberships }, options: CallOptions) =>
      memberships.import(
        { project_id, lines: members.map(toLine) },
        { ...options, idempotencyKey },
      ),
    ),
  )

/** Sends members. Without the lines that the server refuses, it sends them again. */
const sendMembers: (
  project: string,
  members: ReadonlyArray<Member>,
  key: string,
) => Effect.Effect<Sent, Failure, Api> = Effect.fnUntraced(function* (project, members, key) {
  if (members.length === 0) return { members: 0, repeated: 0, refused: [] }
  const { repetitions } = yield* Api
  const before = repetitions()
  const answer = yield* Effect.result(request(project, members, key))
  if (Result.isSuccess(answer)) {
    const repeated = repetitions() > before ? members.length : 0
    return { members: members.length, repeated, refused: [] }
  }
  const { failure } = answer
  const refused = refusedOf(members, failure)
  if (refused.length === 0) return yield* failure
  const numbers = new Set(refused.map(({ line }) => line))
  const rest = members.filter(({ line }) => !numbers.has(line))
  const sent = yield* sendMembers(project, rest, keyAfter(key, rest))
  return { ...sent, refused: [...refused, ...sent.refused] }
})

/** Sends a part. */
export const send = (project: string, { key, members, refused }: Part) =>
  Effect.map(sendMembers(project, members, key), (sent) => ({
    ...sent,
    refused: [...refused, ...sent.refused],
  }))
