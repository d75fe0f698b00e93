/** The current place: the path after `#` in the address. */

import { useEffect, useState } from "preact/hooks"

/** A path's segments, decoded. */
export type Place = ReadonlyArray<string>

const decode = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Returns the kind asked for after a place; empty text for none. */
export const kindAsked = (): string => location.hash.split("?")[1] ?? ""

const read = (): Place =>
  (location.hash.split("?")[0] ?? "")
    .split("/")
    .slice(1)
    .filter((segment) => segment !== "")
    .map(decode)

/** Returns a place's address. */
export const to = (...place: Place): string => `#/${place.map(encodeURIComponent).join("/")}`

/** Goes to a place. */
export const go = (...place: Place): void => {
  location.hash = to(...place)
}

/** Returns the current place. */
export const usePlace = (): Place => {
  const [place, setPlace] = useState(read)
  useEffect(() => {
    const follow = () => setPlace(read())
    addEventListener("hashchange", follow)
    return () => removeEventListener("hashchange", follow)
  }, [])
  return place
}
