/** Paged lists. */

import type { Page } from "./response.ts"

/**
 * A list: a promise of its first page, and an iterable of the items of all pages. A page is requested
 * when its first item is.
 */
export interface List<Item> extends Promise<Page<Item>>, AsyncIterable<Item> {}

type Load<Item> = () => Promise<Page<Item>>

const pagesFrom = <Item>(
  first: Load<Item>,
  follow: (after: string) => Promise<Page<Item>>,
): AsyncIterable<Page<Item>> => ({
  [Symbol.asyncIterator]: () => {
    let load: Load<Item> | undefined = first
    return {
      next: async () => {
        if (load === undefined) return { done: true, value: undefined }
        const page = await load()
        const { next } = page
        load = typeof next === "string" ? () => follow(next) : undefined
        return { done: false, value: page }
      },
    }
  },
})

/**
 * Makes a list.
 *
 * @param first - the first page, on its way
 * @param follow - requests the page after a cursor
 */
export const make = <Item>(
  first: Promise<Page<Item>>,
  follow: (after: string) => Promise<Page<Item>>,
): List<Item> =>
  Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      for await (const page of pagesFrom(() => first, follow)) yield* page.data
    },
  })
