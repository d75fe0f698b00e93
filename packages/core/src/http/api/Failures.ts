/** The schemas of error responses, from the table of errors. */

import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as ApiError from "../ApiError.ts"
import { subject } from "./Successes.ts"

const fields = <Tag extends ApiError.Tag>(tag: Tag) => ({
  ok: Schema.Literal(false),
  ...subject,
  code: Schema.Literal(ApiError.table[tag].status),
})

const error = <Tag extends ApiError.Tag>(tag: Tag) => ({
  error_code: Schema.Literal(ApiError.table[tag].code),
  message: Schema.String,
})

/**
 * The response to an error. The document names its schema after the error.
 *
 * @param details - the fields of the `error` object besides code and message
 */
export const failure = <Tag extends ApiError.Tag, Details extends Schema.Struct.Fields = {}>(
  tag: Tag,
  details?: Details,
) =>
  Schema.Struct({ ...fields(tag), error: Schema.Struct({ ...error(tag), ...details }) })
    .annotate({ identifier: tag })
    .pipe(HttpApiSchema.status(ApiError.table[tag].status))

const { InvalidEndDate, RateLimited } = ApiError.table

/** The responses to a date in neither format, which has an error for each, and to one that is over. */
export const endDate = [
  Schema.Struct({
    ...fields("InvalidEndDate"),
    errors: Schema.Array(Schema.Struct(error("InvalidEndDate"))).check(
      Schema.isMinLength(2),
      Schema.isMaxLength(2),
    ),
  })
    .annotate({ identifier: "InvalidEndDate" })
    .pipe(HttpApiSchema.status(InvalidEndDate.status)),
  failure("EndDateNotInFuture"),
] as const

/** The response to invalid lines of a body. */
export const lines = Schema.Struct({
  ...fields("InvalidLines"),
  errors: Schema.Array(
    Schema.Struct({
      ...error("InvalidLines"),
      line: Schema.Int.annotate({ description: "The number of the line; the first one is 1." }),
    }),
  ).check(Schema.isMinLength(1), Schema.isMaxLength(100)),
})
  .annotate({ identifier: "InvalidLines" })
  .pipe(HttpApiSchema.status(ApiError.table.InvalidLines.status))

/** The only response without `ok`, and with the error code in `code`. */
const rateLimited = Schema.Struct({
  ...subject,
  code: Schema.Literal(RateLimited.status),
  error: Schema.Struct({
    message: Schema.String,
    code: Schema.Literal(RateLimited.code),
    retry_after: Schema.Int,
  }),
})
  .annotate({ identifier: "RateLimited" })
  .pipe(HttpApiSchema.status(RateLimited.status))

/** The errors of every operation, also of those that need no key. */
export const withoutKey = [
  failure("MalformedRequest"),
  failure("MethodNotAllowed"),
  failure("RequestTimeout"),
  failure("PayloadTooLarge"),
  rateLimited,
  failure("RequestHeadersTooLarge"),
  failure("InternalError"),
  failure("StoreUnavailable"),
] as const

/** The errors of every operation that needs a key. */
export const common = [
  ...withoutKey,
  failure("Unauthorized"),
  failure("Forbidden"),
  failure("UnsupportedMediaType"),
] as const

/** The errors of every operation in a project. */
export const inProject = [...common, failure("ProjectNotFound")] as const

/** The errors of every operation that changes something, by its idempotency key. */
export const once = [failure("IdempotencyMismatch"), failure("IdempotencyInProgress")] as const
