/** WebSocket frames (RFC 6455) by hand, right and wrong ones. */

/** Asks for a WebSocket connection to the feed. */
export const handshake = (hostname: string, token: string): string =>
  `GET /v2/realtime HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${token}\r\n` +
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: tenure.v1\r\n\r\n"

export const opcodes = { continuation: 0, text: 1, binary: 2, ping: 9 } as const

/** What a header says beside the opcode and the length. */
interface Flags {
  /** Default: `true`. */
  readonly isLast?: boolean
  /** Default: `true`. */
  readonly isMasked?: boolean
}

const lengthOf = (length: number, mask: number): Buffer => {
  if (length < 126) return Buffer.from([mask | length])
  const bytes = Buffer.alloc(9)
  bytes[0] = mask | 127
  bytes.writeBigUInt64BE(BigInt(length), 1)
  return bytes
}

/** A frame's header. The mask, if there is one, changes nothing. */
export const header = (
  opcode: number,
  length: number,
  { isLast = true, isMasked = true }: Flags = {},
): Buffer =>
  Buffer.concat([
    Buffer.from([(isLast ? 0x80 : 0) | opcode]),
    lengthOf(length, isMasked ? 0x80 : 0),
    Buffer.alloc(isMasked ? 4 : 0),
  ])

export const frame = (opcode: number, payload: Buffer, flags?: Flags): Buffer =>
  Buffer.concat([header(opcode, payload.length, flags), payload])

export const text = (content: string): Buffer => frame(opcodes.text, Buffer.from(content))
