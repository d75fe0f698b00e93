/** Where the user is: the path behind the `#` of the address. */

import { useEffect, useState } from "preact/hooks"

/** The segments of a path, decoded. */
export type Place = ReadonlyArray<string>

const decode = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

const read = (): Place =>
  location.hash
    .split("/")
    .slice(1)
    .filter((segment) => segment !== "")
    .map(decode)

/** The address of a place. */
export const to = (...place: Place): string => `#/${place.map(encodeURIComponent).join("/")}`

/** Goes to a place. */
export const go = (...place: Place): void => {
  location.hash = to(...place)
}

/** Returns where the user is. */
export const usePlace = (): Place => {
  const [place, setPlace] = useState(read)
  useEffect(() => {
    const follow = () => setPlace(read())
    addEventListener("hashchange", follow)
    return () => removeEventListener("hashchange", follow)
  }, [])
  return place
}
