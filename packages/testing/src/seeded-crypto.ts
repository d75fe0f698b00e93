/** WebCrypto whose random values repeat. Runs wherever WebCrypto does. */

const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")

/** WebCrypto's random functions, with numbers from `random`. */
const makeSeededCrypto = (random: () => number): ReadonlyMap<string | symbol, unknown> => {
  const fill = (bytes: Uint8Array): void => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = random() & 0xff
  }
  return new Map<string, unknown>([
    [
      "getRandomValues",
      (array: ArrayBufferView) => {
        fill(new Uint8Array(array.buffer, array.byteOffset, array.byteLength))
        return array
      },
    ],
    [
      "randomUUID",
      () => {
        const bytes = new Uint8Array(16)
        fill(bytes)
        const digits = hex(bytes)
        const variant = "89ab"[random() & 3]
        return [
          digits.slice(0, 8),
          digits.slice(8, 12),
          `4${digits.slice(13, 16)}`,
          `${variant}${digits.slice(17, 20)}`,
          digits.slice(20),
        ].join("-")
      },
    ],
  ])
}

/** WebCrypto with its own functions. Operations on other threads are tracked. */
export const makeCrypto = (
  own: ReadonlyMap<string | symbol, unknown>,
  track: (work: unknown) => void,
): typeof crypto => {
  const tracked = <A extends object>(target: A): A =>
    new Proxy(target, {
      get: (_, name) => {
        const member: unknown = own.get(name) ?? Reflect.get(target, name)
        if (typeof member === "object" && member !== null) return tracked(member)
        if (typeof member !== "function") return member
        return (...args: ReadonlyArray<unknown>): unknown => {
          const result: unknown = Reflect.apply(member, target, args)
          track(result)
          return result
        }
      },
    })
  return tracked(globalThis.crypto)
}

/**
 * Makes a WebCrypto whose random values come from `random`, which returns 32-bit integers.
 *
 * @param track - gets the promises of operations on other threads
 */
export const seededCrypto = (random: () => number, track: (work: unknown) => void): typeof crypto =>
  makeCrypto(makeSeededCrypto(random), track)
