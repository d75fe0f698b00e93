/** HTTP header fields, as hosts pass them. */

/**
 * Header fields by lower-case name. A field that was sent several times is an array, if the host keeps
 * the values apart.
 */
export type HeaderFields = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A field that may be sent at most once. */
export type Single =
  | { readonly _tag: "Absent" }
  | { readonly _tag: "Repeated" }
  | { readonly _tag: "Value"; readonly value: string }

const absent: Single = { _tag: "Absent" }
const repeated: Single = { _tag: "Repeated" }

/**
 * Reads a field that may be sent at most once. Fields of a prototype do not count, nor do values that
 * are not text.
 */
export const single = (headers: HeaderFields, name: string): Single => {
  const field = Object.hasOwn(headers, name) ? headers[name] : undefined
  if (typeof field === "string") return { _tag: "Value", value: field }
  if (!Array.isArray(field) || field.length === 0) return absent
  if (field.length > 1) return repeated
  const [value] = field
  return typeof value === "string" ? { _tag: "Value", value } : absent
}

/**
 * Returns all values of a field.
 *
 * @param rawHeaders - the fields as they were sent: names and values in turns
 * @param name - the name of the field in lower case
 */
export const valuesOf = (
  rawHeaders: ReadonlyArray<string>,
  name: string,
): ReadonlyArray<string> => {
  const values: Array<string> = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [field, value] = [rawHeaders[index], rawHeaders[index + 1]]
    if (field?.length !== name.length || field.toLowerCase() !== name) continue
    if (value !== undefined) values.push(value)
  }
  return values
}

/**
 * Restores the values of `Authorization` and `Content-Type` that a host dropped when it kept only the
 * first of several.
 *
 * @param rawHeaders - the fields as they were sent: names and values in turns
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
