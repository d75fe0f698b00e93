/** A school's courses, and the places in them: the application's own tables and routes. */

import { PgClient } from "@effect/sql-pg"
import { Events, Memberships } from "@tenure/core/effect"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/** The Tenure project with the school's members. */
export const projectId = "school"

/** The course does not exist. */
class CourseNotFound extends Data.TaggedError("CourseNotFound") {}

/** The user already has a place. */
class AlreadyBooked extends Data.TaggedError("AlreadyBooked") {}

/** The course has no place left. */
class CourseFull extends Data.TaggedError("CourseFull") {}

/** Creates the tables, with two courses to try. */
export const createTables = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  yield* sql`
    CREATE TABLE IF NOT EXISTS courses (
      id text PRIMARY KEY,
      ends_at timestamptz NOT NULL,
      free_places integer NOT NULL
    )`
  yield* sql`
    CREATE TABLE IF NOT EXISTS places (
      course_id text REFERENCES courses,
      user_id text,
      PRIMARY KEY (course_id, user_id)
    )`
  yield* sql`
    INSERT INTO courses VALUES ('go', '2098-07-01Z', 1), ('chess', '2099-07-01Z', 20)
    ON CONFLICT DO NOTHING`
})

const takePlace = Effect.fn("takePlace")(function* (courseId: string, userId: string) {
  const sql = yield* PgClient.PgClient
  const [course] = yield* sql<{ readonly ends_at: Date }>`
    SELECT ends_at FROM courses WHERE id = ${courseId}`
  if (course === undefined) return yield* new CourseNotFound()
  const taken = yield* sql`
    INSERT INTO places VALUES (${courseId}, ${userId}) ON CONFLICT DO NOTHING RETURNING user_id`
  if (taken.length === 0) return yield* new AlreadyBooked()
  return course.ends_at.getTime()
})

const countPlace = Effect.fn("countPlace")(function* (courseId: string) {
  const sql = yield* PgClient.PgClient
  const counted = yield* sql`
    UPDATE courses SET free_places = free_places - 1
    WHERE id = ${courseId} AND free_places > 0
    RETURNING id`
  if (counted.length === 0) return yield* new CourseFull()
})

/**
 * Books a place in a course for a member, and extends the membership to the course's end. If any
 * step fails, the transaction undoes them all: the place, the extension, its audit row and the
 * events.
 */
const book = Effect.fn("book")(function* (courseId: string, userId: string) {
  const sql = yield* PgClient.PgClient
  const memberships = yield* Memberships
  const events = yield* Events
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const endDate = yield* takePlace(courseId, userId)
      const member = { projectId, userId }
      const membership = yield* memberships.find(member)
      if (membership.endDate < endDate) yield* memberships.extend({ ...member, endDate })
      yield* events.publish({
        projectId,
        type: "course.booked",
        data: { course_id: courseId, user_id: userId },
      })
      yield* countPlace(courseId)
    }),
  )
})

const Booking = Schema.Struct({
  pathParams: Schema.Struct({ course: Schema.String }),
  body: Schema.Struct({ user_id: Schema.String }),
})

const empty = (status: number) => () => Effect.succeed(HttpServerResponse.empty({ status }))

/** The application's own routes. */
export const routes = Layer.mergeAll(
  HttpRouter.add(
    "GET",
    "/courses",
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      return yield* HttpServerResponse.json(yield* sql`SELECT * FROM courses ORDER BY id`)
    }),
  ),
  HttpRouter.add(
    "POST",
    "/courses/:course/places",
    Effect.gen(function* () {
      const { body, pathParams } = yield* HttpRouter.schemaJson(Booking)
      yield* book(pathParams.course, body.user_id)
      return HttpServerResponse.empty({ status: 204 })
    }).pipe(
      Effect.catchTags({
        CourseNotFound: empty(404),
        MembershipNotFound: empty(404),
        AlreadyBooked: empty(409),
        CourseFull: empty(409),
        SchemaError: empty(422),
        InvalidInput: empty(422),
        StoreUnavailable: empty(503),
      }),
    ),
  ),
)
