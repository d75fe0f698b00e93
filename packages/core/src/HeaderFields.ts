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
