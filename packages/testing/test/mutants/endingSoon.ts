/** Stores of memberships whose lists by ends are wrong. */

import {
  EndDate,
  type EndingCursor,
  type EndingPage,
  MembershipStore,
  cursorOfPosition,
  positionOfCursor,
} from "@tenure/core/store"
import * as Effect from "effect/Effect"
import { mutantsOf } from "./Mutant.ts"

type Store = MembershipStore["Service"]

/** Changes the pages. */
const paging =
  (change: (page: EndingPage) => EndingPage) =>
  ({ listEnding }: Store): Partial<Store> => ({
    listEnding: (projectId, page) => Effect.map(listEnding(projectId, page), change),
  })

/** Changes what is asked for. */
const asking =
  (change: (page: Parameters<Store["listEnding"]>[1]) => Parameters<Store["listEnding"]>[1]) =>
  ({ listEnding }: Store): Partial<Store> => ({
    listEnding: (projectId, page) => listEnding(projectId, change(page)),
  })

/** Stores of memberships whose lists by ends are wrong. */
export const endingSoon = mutantsOf(MembershipStore, {
  "lists those that end at the date": asking((page) => ({
    ...page,
    before: EndDate(page.before + 1),
  })),

  "lists more than it is asked for": asking((page) => ({ ...page, limit: page.limit + 1 })),

  "lists the first page only": paging(({ memberships }) => ({ memberships, next: undefined })),

  "begins each page anew": asking((page) => ({ ...page, after: undefined })),

  "lists by user id": paging((page) => ({
    ...page,
    memberships: page.memberships.toSorted((one, other) => (one.userId < other.userId ? -1 : 1)),
  })),

  "goes on after all that end at the same time": paging((page) => {
    const next = page.next && positionOfCursor(page.next)
    return {
      ...page,
      next: next && cursorOfPosition({ endDate: next.endDate, userId: "9".repeat(64) }),
    }
  }),

  "loses those that were put off beyond a page": ({ grant, listEnding }) => {
    const first = new Map<string, number>()
    return {
      grant: (granted) => {
        first.set(granted.userId, granted.endDate)
        return grant(granted)
      },
      listEnding: (projectId, { after, ...page }) =>
        Effect.map(listEnding(projectId, { ...page, after }), ({ memberships, next }) => ({
          next,
          memberships: memberships.filter(
            ({ userId }) =>
              after === undefined ||
              (first.get(userId) ?? Infinity) > positionOfCursor(after).endDate,
          ),
        })),
    }
  },

  "loses those after a bulk extension": ({ extendAll, listEnding }) => {
    let bulks = 0
    const bulksAt = new Map<EndingCursor, number>()
    return {
      extendAll: (extension) => {
        bulks++
        return extendAll(extension)
      },
      listEnding: (projectId, page) =>
        Effect.map(listEnding(projectId, page), (found) => {
          const isLost = page.after !== undefined && bulksAt.get(page.after) !== bulks
          if (found.next !== undefined) bulksAt.set(found.next, bulks)
          return isLost ? { memberships: [], next: undefined } : found
        }),
    }
  },

  "lists those that have ended, too": ({ list, listEnding }) => ({
    listEnding: Effect.fnUntraced(function* (projectId, page) {
      const { memberships, next } = yield* listEnding(projectId, page)
      const all = yield* list(projectId, { after: undefined, limit: 10_000 })
      const [earliest] = memberships
      const ended = all.filter(
        ({ endDate }) => earliest === undefined || endDate < earliest.endDate,
      )
      return { memberships: [...ended, ...memberships].slice(0, page.limit), next }
    }),
  }),

  "has no members in a project that does not exist": ({ listEnding }) => ({
    listEnding: (projectId, page) =>
      Effect.catchTag(listEnding(projectId, page), "ProjectNotFound", () =>
        Effect.succeed({ memberships: [], next: undefined }),
      ),
  }),
})
