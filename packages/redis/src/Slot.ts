/** The slot of a key in a cluster, as the specification of Redis Cluster defines it. */

const slots = 16_384

/** CRC-16/XMODEM. */
const crc16 = (bytes: Uint8Array): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
    }
    crc &= 0xffff
  }
  return crc
}

/** The part of a key that decides: what is between its first braces, if that is not empty. */
const tagOf = (key: string): string => /\{(.*?)\}/s.exec(key)?.[1] || key

const encoder = new TextEncoder()

/** Returns the slot of a key. */
export const slotOf = (key: string): number => crc16(encoder.encode(tagOf(key))) % slots
