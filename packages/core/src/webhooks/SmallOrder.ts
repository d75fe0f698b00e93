/** Public keys of Ed25519 with which anybody can forge signatures. */

// The y coordinates of the points whose order divides 8, also as 2^255 - 19 + y (RFC 8032, 5.1.3).
const smallOrder = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
])

const hex = (byte: number): string => byte.toString(16).padStart(2, "0")

/**
 * Tells whether a public key, 32 bytes, is a point of small order, for example all zeros. Runtimes
 * accept such a key, and signatures that verify with it need no private key.
 */
export const hasSmallOrder = (publicKey: Uint8Array): boolean => {
  // The highest bit is the sign of x.
  const y = Array.from(publicKey, (byte, index) => hex(index === 31 ? byte & 0x7f : byte))
  return smallOrder.has(y.join(""))
}
