/** The newest elements of a sequence, up to a fixed number. */
export interface Ring<A> {
  readonly push: (element: A) => void
  /** Returns how many elements were ever pushed. */
  readonly pushed: () => number
  /** Yields all elements that are kept, newest first. */
  readonly newestFirst: () => Generator<A>
  /** Replaces each element, or drops it if there is nothing in its place. */
  readonly replace: (change: (element: A) => A | undefined) => void
}

/** Makes an empty ring that keeps `capacity` elements. */
export const make = <A>(capacity: number): Ring<A> => {
  let elements: Array<A> = []
  let next = 0
  let pushed = 0

  function* newestFirst() {
    for (let age = 1; age <= elements.length; age++) {
      const element = elements[(next - age + elements.length) % elements.length]
      if (element !== undefined) yield element
    }
  }

  return {
    push: (element) => {
      elements[next] = element
      next = (next + 1) % capacity
      pushed++
    },
    pushed: () => pushed,
    newestFirst,
    replace: (change) => {
      elements = [...newestFirst()].flatMap((element) => change(element) ?? []).toReversed()
      next = elements.length % capacity
    },
  }
}
