/** The schemas of the envelope around results. */

import * as Schema from "effect/Schema"
import * as Fields from "./Fields.ts"

/** What every response says of its request. */
export const subject = {
  request_id: Fields.requestId,
  method: Schema.String,
  path: Schema.String,
}

const fields = (message: string) => ({
  ok: Schema.Literal(true),
  ...subject,
  code: Schema.Literal(200),
  message: Schema.String.annotate({ examples: [message] }),
})

const total = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ examples: [1] })

/** The response of an operation that counts nothing, with the message that it has. */
export const success = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({ ...fields(message), data })

/** The response of an operation that counts items, with the message that it has. */
export const counted = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({ ...fields(message), total, data })

/** The response of an operation that lists a page, with the message that it has. */
export const paged = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({
    ...counted(data, message).fields,
    next: Schema.NullOr(Schema.String).annotate({
      description: "The cursor of the next page, for `after`; null on the last page.",
      examples: [null],
    }),
  })

/** The response of an operation that reads on from a cursor, with the message that it has. */
export const readOn = <Data extends Schema.Top>(data: Data, message: string) =>
  Schema.Struct({
    ...counted(data, message).fields,
    next: Schema.String.annotate({
      description: "The cursor of the place after these items, for `after`.",
      examples: ["bf74eca13f6d.mhk1v2q8.ou.1"],
    }),
  })
