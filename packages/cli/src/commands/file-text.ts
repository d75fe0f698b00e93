/** Reads lines from text files with any size and encoding. */

import { Buffer } from "node:buffer"

/** The file cannot be read on. */
export class UnreadableFile extends Error {}

const archive =
  "It is no text, but a zip archive, as spreadsheets are (.xlsx, .ods, .numbers): save it as CSV there, and import that file"

const compressed = (program: string): string =>
  `It is compressed: unpack it, as in ${program} FILE | tenure members import -`

/** Other file types' first bytes, with the advice. */
const signatures: ReadonlyArray<readonly [start: string, problem: string]> = [
  ["PK\u0003\u0004", archive],
  ["PK\u0005\u0006", archive],
  [
    "\u00d0\u00cf\u0011\u00e0",
    "It is no text, but a spreadsheet (.xls): save it as CSV there, and import that file",
  ],
  ["\u001f\u008b", compressed("zcat")],
  ["\u00fd7zXZ", compressed("xzcat")],
  ["BZh", compressed("bzcat")],
  ["(\u00b5/\u00fd", compressed("zstdcat")],
  ["7z\u00bc\u00af", compressed("7z x -so")],
  ["%PDF-", "It is no text, but a PDF: export the members as CSV"],
]

/** An encoding. For files other than Unicode, Windows-1252 is a guess. */
type Encoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252"

// A text in UTF-16 has its first zero long before.
const sniffedBytes = 4096

// The least ratio between zeros in even and odd positions.
const clearly = 4

/** Detects UTF-16 by its byte order mark, or because every other byte in Latin text is zero. */
const utf16Of = (start: Buffer): Encoding | undefined => {
  if (start[0] === 0xff && start[1] === 0xfe) return "utf-16le"
  if (start[0] === 0xfe && start[1] === 0xff) return "utf-16be"
  const zeros = (parity: number): number =>
    start.reduce((sum, byte, index) => sum + Number(byte === 0 && index % 2 === parity), 0)
  const [even, odd] = [zeros(0), zeros(1)]
  if (even + odd === 0) return undefined
  if (odd > clearly * even) return "utf-16le"
  if (even > clearly * odd) return "utf-16be"
  throw new UnreadableFile("It is no text: it has zero bytes. Export the members as CSV in UTF-8")
}

// The characters from 0x80 on, with Latin-1 characters in the gaps.
const windows1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

const fromWindows1252 = (bytes: Buffer): string =>
  bytes
    .toString("latin1")
    .replaceAll(/[\u0080-\u009f]/g, (one) => windows1252.charAt(one.charCodeAt(0) - 0x80))

// The longest UTF-8 character.
const longestBytes = 4

const utf8Start = /^(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})/

/** Decodes a text, a part at a time. */
interface Decoder {
  /** Undefined while all characters are ASCII, and the encoding thus does not matter. */
  readonly encoding: () => Encoding | undefined
  readonly decode: (bytes: Buffer, isLast: boolean) => string
}

const makeUtf16Decoder = (encoding: Encoding): Decoder => {
  const decoder = new TextDecoder(encoding, { ignoreBOM: true })
  return {
    encoding: () => encoding,
    decode: (bytes, isLast) => decoder.decode(bytes, { stream: !isLast }),
  }
}

/** Decodes text as UTF-8, or as Windows-1252 if its first non-ASCII character is not valid UTF-8. */
const makeByteDecoder = (): Decoder => {
  const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })
  let encoding: Encoding | undefined
  let kept: Buffer = Buffer.alloc(0)
  return {
    encoding: () => encoding,
    decode: (added, isLast) => {
      const bytes = Buffer.concat([kept, added])
      kept = Buffer.alloc(0)
      const first = encoding === undefined ? bytes.findIndex((byte) => byte >= 0x80) : 0
      if (first === -1) return bytes.toString("latin1")
      if (encoding === undefined) {
        if (bytes.length - first < longestBytes && !isLast) {
          kept = bytes.subarray(first)
          return bytes.toString("latin1", 0, first)
        }
        const start = bytes.toString("latin1", first, first + longestBytes)
        encoding = utf8Start.test(start) ? "utf-8" : "windows-1252"
      }
      return encoding === "utf-8" ? utf8.decode(bytes, { stream: !isLast }) : fromWindows1252(bytes)
    },
  }
}

/** Detects the encoding from a file's beginning. */
const decoderFor = (start: Buffer): Decoder => {
  const text = start.toString("latin1", 0, 8)
  const [, problem] = signatures.find(([signature]) => text.startsWith(signature)) ?? []
  if (problem !== undefined) throw new UnreadableFile(problem)
  const utf16 = utf16Of(start)
  return utf16 === undefined ? makeByteDecoder() : makeUtf16Decoder(utf16)
}

/** A line reader with lookahead. */
export interface Lines {
  /** The next line's number, from 1. */
  readonly number: () => number
  /** Returns a line: 0 for the next one. Returns `undefined` after the last. */
  readonly peek: (offset: number) => Promise<string | undefined>
  /** Skips `count` lines. */
  readonly drop: (count: number) => void
  /** Whether the encoding is a guess, and letters beyond ASCII may therefore be others. */
  readonly isGuessed: () => boolean
}

// The maximum characters in a line. It limits the memory for a file without line feeds.
const maxCharacters = 1 << 20

/**
 * Detects the line end, if the text has one. In JSON, it is a line feed, because texts may contain other separators.
 * Old spreadsheets end lines with carriage returns alone.
 */
const separatorIn = (text: string, isWhole: boolean): "\n" | "\r" | undefined => {
  if (/^\s*\{/.test(text)) return "\n"
  const [end] = /\r?\n|\r(?=[^\n])/.exec(text) ?? []
  if (end !== undefined) return end === "\r" ? "\r" : "\n"
  return isWhole || text.length > maxCharacters ? "\n" : undefined
}

/** Reads lines from bytes, as they are asked for. */
export const readTextLines = (source: AsyncIterable<Buffer>): Lines => {
  const chunks = source[Symbol.asyncIterator]()
  let decoder: Decoder | undefined
  let separator: "\n" | "\r" | undefined
  let start: Buffer = Buffer.alloc(0)
  let rest = ""
  let lines: Array<string> = []
  let next = 0
  let number = 1
  let isOver = false

  const push = (line: string): void => {
    if (line.length > maxCharacters) {
      const tooLong = number + lines.length - next
      throw new UnreadableFile(`Line ${tooLong} is longer than 1 MiB, so it cannot be a member`)
    }
    lines.push(separator === "\n" ? line.replace(/\r+$/, "") : line)
  }

  const decode = (bytes: Buffer): string => {
    start = decoder === undefined ? Buffer.concat([start, bytes]) : bytes
    if (decoder === undefined && start.length < sniffedBytes && !isOver) return ""
    const isFirst = decoder === undefined
    decoder ??= decoderFor(start)
    const text = decoder.decode(start, isOver)
    return isFirst ? text.replace(/^\uFEFF/, "") : text
  }

  /** Reads a chunk. Returns whether there was one. */
  const readOn = async (): Promise<boolean> => {
    if (isOver) return false
    const { done, value } = await chunks.next()
    isOver = done === true
    rest += decode(isOver ? Buffer.alloc(0) : value)
    separator ??= separatorIn(rest, isOver)
    if (separator === undefined) return true
    lines = lines.slice(next)
    next = 0
    const parts = rest.split(separator)
    rest = parts.pop() ?? ""
    for (const part of parts) push(part)
    if (isOver || rest.length > maxCharacters) push(rest)
    return true
  }

  return {
    number: () => number,
    peek: async (offset) => {
      while (lines.length <= next + offset && (await readOn()));
      return lines[next + offset]
    },
    drop: (count) => {
      next += count
      number += count
    },
    isGuessed: () => decoder?.encoding() === "windows-1252",
  }
}
