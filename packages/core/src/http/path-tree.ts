/** Finds the pattern for a path. Patterns are kept in a tree with one level per path segment. */

import * as Struct from "effect/Struct"

/** A pattern's value, and the parameters in a matching path. */
export interface PathMatch<Value, Name extends string> {
  readonly value: Value
  /** The parameter values, percent-encoded. Parameters missing from the pattern are empty. */
  readonly params: Readonly<Record<Name, string>>
}

interface Draft<Value, Name extends string> extends PathMatch<Value, Name> {
  readonly params: Record<Name, string>
}

/** The patterns with a common beginning. */
interface Node<Value, Name> {
  /** The value for the pattern ending here. */
  value: Value | undefined
  /** The longer patterns, by their next segment. */
  readonly literals: Map<string, Node<Value, Name>>
  parameter: { readonly name: Name; readonly node: Node<Value, Name> } | undefined
}

const emptyNode = <Value, Name>(): Node<Value, Name> => ({
  value: undefined,
  literals: new Map(),
  parameter: undefined,
})

/** Returns the node behind a pattern's segment, and adds it if it is missing. */
const grow = <Value, Name extends string>(
  parent: Node<Value, Name>,
  segment: string,
  names: ReadonlyArray<Name>,
): Node<Value, Name> => {
  const name = names.find((known) => segment === `:${known}`)
  if (name !== undefined) return (parent.parameter ??= { name, node: emptyNode() }).node
  const node = parent.literals.get(segment) ?? emptyNode()
  parent.literals.set(segment, node)
  return node
}

// Clients and hosts resolve these as steps to another path (RFC 3986, 5.2.4).
const dotSegment = /^(\.|%2e){1,2}$/i

const isParameter = (segment: string): boolean => segment !== "" && !dotSegment.test(segment)

/**
 * Makes the function that finds a path's pattern. A literal segment wins over a parameter.
 *
 * @param patterns - values by pattern, for example `/items/:id`
 * @param noParams - all parameters in the patterns, each with an empty value
 * @returns a function that reads a path from the index `start`, and returns `undefined` if the path
 *   matches no pattern
 */
export const makePathTree = <Value, Name extends string>(
  patterns: Iterable<readonly [string, Value]>,
  noParams: Readonly<Record<Name, string>>,
): ((path: string, start: number) => PathMatch<Value, Name> | undefined) => {
  const names = Struct.keys(noParams)
  const root = emptyNode<Value, Name>()
  for (const [pattern, value] of patterns) {
    const segments = pattern.slice(1).split("/")
    const end = segments.reduce((node, segment) => grow(node, segment, names), root)
    end.value = value
  }

  // Goes no deeper than the longest pattern, however long the path is.
  const follow = (
    { literals, parameter, value }: Node<Value, Name>,
    path: string,
    start: number,
  ): Draft<Value, Name> | undefined => {
    if (start > path.length) {
      return value === undefined ? undefined : { value, params: { ...noParams } }
    }
    const slash = path.indexOf("/", start)
    const end = slash === -1 ? path.length : slash
    const segment = path.slice(start, end)
    const literal = literals.get(segment)
    const found = literal && follow(literal, path, end + 1)
    if (found !== undefined || parameter === undefined || !isParameter(segment)) return found
    const rest = follow(parameter.node, path, end + 1)
    if (rest !== undefined) rest.params[parameter.name] = segment
    return rest
  }
  return (path, start) => (path[start] === "/" ? follow(root, path, start + 1) : undefined)
}
