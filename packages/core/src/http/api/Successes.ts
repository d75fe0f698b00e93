/** The schemas of the envelope around results. */

import * as Schema from "effect/Schema"

/** What every response says of its request. */
export const subject = {
  request_id: Schema.String.check(Schema.isUUID()),
  method: Schema.String,
  path: Schema.String,
}

const fields = {
  ok: Schema.Literal(true),
  ...subject,
  code: Schema.Literal(200),
  message: Schema.String,
}

/** The response of an operation that counts nothing. */
export const success = <Data extends Schema.Top>(data: Data) => Schema.Struct({ ...fields, data })

/** The response of an operation that counts items. */
export const counted = <Data extends Schema.Top>(data: Data) =>
  Schema.Struct({ ...fields, total: Schema.Int, data })
