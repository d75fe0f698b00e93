/** Pages of the list by ends. */

import {
  type EndDate,
  type EndingCursor,
  type EndingPage,
  MembershipStore,
} from "@tenure/core/store"
import { Fixture } from "@tenure/testing/conformance"
import * as Effect from "effect/Effect"

/** Returns all pages of a list by ends. */
export const endingPages = Effect.fnUntraced(function* (before: EndDate, limit: number) {
  const store = yield* MembershipStore
  const pages: Array<EndingPage> = []
  let after: EndingCursor | undefined
  do {
    const page: EndingPage = yield* store.listEnding(Fixture.p1, { before, after, limit })
    pages.push(page)
    after = page.next
  } while (after !== undefined)
  return pages
})
