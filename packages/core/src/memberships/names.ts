/** The names of the arguments of methods on projects and memberships. */

import { type Noun, namesOf, originFields as origin } from "../base/field-names.ts"
import {
  extension,
  bulkExtension,
  segmentExtension,
  undoing,
  bulkExtensionsPage,
  endsCount,
} from "./extension-inputs.ts"
import {
  ofMember,
  projectSettings,
  projectUpdate,
  projectsPage,
  newMembership,
  imported,
  membershipUpdate,
  ending,
  moving,
  pausing,
  resuming,
  possibleMember,
  membershipsPage,
  endingPage,
  disclosure,
  historyPage,
  historySearch,
} from "./inputs.ts"

const repeatable = { idempotencyKey: true }

// Rows and returned objects may have their project's id.
const ofAny = { projectId: false }

const searching = "as an argument of searchHistory"

const goal = {
  endDate: "extend",
  by: "extend_by",
  through: true,
  mode: ["never_shorten", 'mode: "neverShorten"'],
} as const

const changing = { ...ofAny, ...repeatable }

const resultFields = new Set(["endDate", "metadata", "state"])

const readers = new Set(["find", "isActive", "history", "searchHistory"])

const takers = new Set([
  "grant",
  "import.memberships",
  "extend",
  "update",
  "end",
  "move",
  "pause",
  "resume",
  "erase",
])

const projectFields = new Set(["memberships", ...Object.keys(projectSettings)])

/** Tells whether a field is that of a returned project, which has a membership count. */
const isOfProject = (field: string, given: object): boolean =>
  projectFields.has(field) && typeof Reflect.get(given, "memberships") === "number"

/** Argument names by method. A returned membership or project can be passed to another method. */
export const membershipNames: Noun = {
  methods: {
    createProject: [null, origin, repeatable],
    updateProject: [namesOf(projectUpdate, changing), origin],
    deleteProject: [null, origin, repeatable],
    findProject: [null],
    listProjects: [namesOf(projectsPage)],
    grant: [namesOf(newMembership, changing), origin],
    import: [
      namesOf(imported, {
        ...changing,
        memberships: {
          userId: true,
          endDate: true,
          through: true,
          timeZone: true,
          keptDay: true,
          metadata: true,
          pausedAt: true,
          resumesAt: true,
        },
      }),
      origin,
    ],
    // A returned membership may have `created`.
    extend: [namesOf(extension, { ...changing, ...goal, created: false }), origin],
    extendAll: [namesOf(bulkExtension, { ...changing, ...goal }), origin],
    extendSome: [
      namesOf(segmentExtension, {
        ...changing,
        ...goal,
        where: {
          metadata: true,
          state: true,
          endingAfter: true,
          endingBefore: true,
          userIds: true,
        },
      }),
      origin,
    ],
    undoBulkExtension: [namesOf(undoing, { ...changing, id: false }), origin],
    bulkExtensions: [namesOf(bulkExtensionsPage, ofAny)],
    update: [namesOf(membershipUpdate, changing), origin],
    // The API erases by a parameter in the same request.
    end: [namesOf(ending, { ...changing, userId: ["erase", "as the method erase"] }), origin],
    move: [namesOf(moving, changing), origin],
    pause: [namesOf(pausing, changing), origin],
    resume: [namesOf(resuming, changing), origin],
    erase: [namesOf(ofMember, changing), origin],
    find: [namesOf(ofMember, ofAny)],
    isActive: [namesOf(possibleMember, ofAny)],
    list: [namesOf(membershipsPage, ofAny)],
    listEnding: [namesOf(endingPage, { ...ofAny, before: "ending_before" })],
    countEnds: [
      namesOf(endsCount, { ...ofAny, extension: { ...goal, through: true, timeZone: true } }),
    ],
    recordShown: [namesOf(disclosure, { ...ofAny, action: false, subject: false }), origin],
    history: [
      namesOf(historyPage, {
        ...ofAny,
        limit: ["since", searching],
        after: ["until", searching],
      }),
    ],
    // Hosts' own rows may have these, too.
    searchHistory: [
      namesOf(historySearch, { ...ofAny, action: false, since: false, until: false }),
    ],
  },
  ignores: (place, field, given) =>
    isOfProject(field, given) ||
    (resultFields.has(field) &&
      (readers.has(place) || (takers.has(place) && Object.hasOwn(given, "state")))),
}
