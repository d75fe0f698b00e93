/** Base64 (RFC 4648), by functions that every JavaScript runtime has. */

/** Encodes bytes in the standard alphabet, with padding. */
export const encode = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

/** Encodes bytes in the URL-safe alphabet, without padding. */
export const encodeUrl = (bytes: Uint8Array): string =>
  encode(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")

/** Decodes text that is known to be valid base64. Throws if it is invalid. */
export const decodeUnsafe = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0))

// Groups of four characters, the last one padded. `atob` also accepts white space and missing padding.
const pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Decodes padded text. Returns `undefined` if it is invalid. */
export const decode = (text: string): Uint8Array<ArrayBuffer> | undefined =>
  pattern.test(text) ? decodeUnsafe(text) : undefined

/** Decodes URL-safe text without padding. Returns `undefined` if it is invalid. */
export const decodeUrl = (text: string): Uint8Array<ArrayBuffer> | undefined => {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined
  const standard = text.replaceAll("-", "+").replaceAll("_", "/")
  return decode(standard.padEnd(Math.ceil(standard.length / 4) * 4, "="))
}
