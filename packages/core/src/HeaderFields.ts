/** HTTP header fields as hosts hand them over. */

/**
 * Header fields by lower-case name. A field that a client sent several times is an array where the
 * host kept the values apart.
 */
export type HeaderFields = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A field that may occur once only. */
export type Single =
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Repeated" }
  | { readonly _tag: "Value"; readonly value: string }

const absent: Single = { _tag: "Absent" }
const repeated: Single = { _tag: "Repeated" }

/** Reads a field that may occur once only. */
export const single = (headers: HeaderFields, name: string): Single => {
  const field = headers[name]
  if (field === undefined) return absent
  if (typeof field === "string") return { _tag: "Value", value: field }
  const [value, ...more] = field
  if (value === undefined) return absent
  return more.length === 0 ? { _tag: "Value", value } : repeated
}

/**
 * All values of a field among those that were sent, names and values by turns.
 *
 * @param name - in lower case
 */
export const valuesOf = (rawHeaders: ReadonlyArray<string>, name: string): ReadonlyArray<string> =>
  rawHeaders.filter((_, index) => {
    const field = index % 2 === 1 ? rawHeaders[index - 1] : undefined
    return field?.length === name.length && field.toLowerCase() === name
  })

/**
 * The fields by name, with all values of those that may occur once, where a host has kept the first
 * and dropped the others.
 *
 * @param rawHeaders - the fields as they were sent, names and values by turns
 */
export const keepRepeated = (
  headers: HeaderFields,
  rawHeaders: ReadonlyArray<string>,
): HeaderFields => {
  const authorization = valuesOf(rawHeaders, "authorization")
  const contentType = valuesOf(rawHeaders, "content-type")
  return authorization.length > 1 || contentType.length > 1
    ? { ...headers, authorization, "content-type": contentType }
    : headers
}
