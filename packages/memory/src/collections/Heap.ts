/** A binary heap, which returns its least element first. */
export interface Heap<A> {
  readonly size: () => number
  readonly peek: () => A | undefined
  readonly push: (element: A) => void
  readonly pop: () => A | undefined
  /** Returns all elements, in no particular order. */
  readonly values: () => ReadonlyArray<A>
  readonly clear: () => void
}

/** Makes an empty heap. */
export const make = <A>(isLess: (one: A, other: A) => boolean): Heap<A> => {
  let elements: Array<A> = []

  /** The index of the lesser of two elements; the first where the second is beyond the end. */
  const lesser = (first: number, second: number): number => {
    const one = elements[first]
    const other = elements[second]
    return one !== undefined && other !== undefined && isLess(other, one) ? second : first
  }

  const swap = (first: number, second: number): void => {
    const one = elements[first]
    const other = elements[second]
    if (one === undefined || other === undefined) return
    elements[first] = other
    elements[second] = one
  }

  const rise = (index: number): void => {
    const parent = (index - 1) >> 1
    if (index === 0 || lesser(parent, index) === parent) return
    swap(index, parent)
    rise(parent)
  }

  const sink = (index: number): void => {
    const least = lesser(lesser(index, 2 * index + 1), 2 * index + 2)
    if (least === index) return
    swap(index, least)
    sink(least)
  }

  return {
    size: () => elements.length,
    peek: () => elements[0],
    push: (element) => {
      elements.push(element)
      rise(elements.length - 1)
    },
    pop: () => {
      swap(0, elements.length - 1)
      const least = elements.pop()
      sink(0)
      return least
    },
    values: () => elements,
    clear: () => {
      elements = []
    },
  }
}
