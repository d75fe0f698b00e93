/** Base64 (RFC 4648), on what every JavaScript runtime has. */

/** Encodes bytes with padding. */
export const encode = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes))

/** Encodes bytes in the URL-safe alphabet, without padding. */
export const encodeUrl = (bytes: Uint8Array): string =>
  encode(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")

/** Decodes a text that is known to be base64. Throws where it is not. */
export const decodeUnsafe = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text), (character) => character.charCodeAt(0))

// Four characters at a time, the last group padded; `atob` alone takes white space and no padding.
const pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Decodes a padded text, or gives `undefined` where it is not base64. */
export const decode = (text: string): Uint8Array<ArrayBuffer> | undefined =>
  pattern.test(text) ? decodeUnsafe(text) : undefined
