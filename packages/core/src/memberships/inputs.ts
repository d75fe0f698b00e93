/** The fields in arguments to the methods on memberships. */

import { type FieldsOf, type MethodFields, originFields as origin } from "../base/field-names.ts"
import type { ToDate } from "./extensions.ts"
import type { ImportRow } from "./membership.ts"
import type { Memberships } from "./memberships.ts"

const project = { projectId: false }
const member = { ...project, userId: true }
const page = { after: true, limit: true }
const repeatable = { idempotencyKey: true }
const changing = { ...repeatable, reason: true }
const trying = { ...changing, dryRun: true, events: true }

const goal = {
  endDate: "extend",
  by: "extend_by",
  mode: ["never_shorten", 'mode: "neverShorten"'],
} satisfies FieldsOf<ToDate>

// Rows may have their project's id, as those from `list` have.
const row = { userId: true, endDate: true, metadata: true } satisfies FieldsOf<ImportRow>

const methods: MethodFields<Memberships["Service"]> = {
  createProject: [null, origin, repeatable],
  deleteProject: [null, origin, repeatable],
  findProject: [null],
  listProjects: [{ ...page, within: true }],
  grant: [{ ...member, ...changing, endDate: true, metadata: true }, origin],
  import: [{ ...project, ...trying, memberships: row }, origin],
  extend: [{ ...member, ...trying, ...goal, from: true, expectedEndDate: true }, origin],
  extendAll: [{ ...project, ...trying, ...goal }, origin],
  undoBulkExtension: [{ ...project, ...trying, id: false }, origin],
  bulkExtensions: [{ ...project, ...page }],
  update: [{ ...member, ...changing, metadata: true }, origin],
  // The API erases by a parameter in the same request.
  end: [{ ...member, ...changing, userId: ["erase", "as the method erase"] }, origin],
  move: [{ ...member, ...changing, to: true }, origin],
  erase: [{ ...member, ...repeatable }, origin],
  find: [member],
  isActive: [member],
  list: [{ ...project, ...page, userIds: true, prefix: true, state: true }],
  listEnding: [{ ...project, ...page, before: "ending_before" }],
  countEnds: [{ ...project, from: true, to: true, extension: goal }],
  recordShown: [{ ...project, action: false, subject: false }, origin],
  history: [{ ...member, ...page }],
}

const resultFields = new Set(["endDate", "metadata", "state"])
const readers = new Set(["find", "isActive", "history"])
const takers = new Set(["grant", "import.memberships", "extend", "update", "end", "move", "erase"])

/** Tells whether a field is the number of memberships, as in a returned project. */
const isCount = (field: string, given: object): boolean =>
  field === "memberships" && typeof Reflect.get(given, field) === "number"

/** The methods' fields, by name. A returned membership or project can be passed to another method. */
export const membershipFields = {
  methods,
  ignores: (place: string, field: string, given: object) =>
    isCount(field, given) ||
    (resultFields.has(field) &&
      (readers.has(place) || (takers.has(place) && Object.hasOwn(given, "state")))),
}
