/** Text that a terminal shows as it is. */

// Control characters, and those that reorder or hide text, can make a terminal show something else.
const unprintable = /\p{C}/gu

const escape = (character: string): string =>
  JSON.stringify(character)
    .slice(1, -1)
    .replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Escapes characters that a terminal does not show as they are, as JSON does. */
export const printable = (text: string): string => text.replaceAll(unprintable, escape)

/** Prints a value as JSON, with the characters escaped that a terminal does not show as they are. */
export const toJson = (value: unknown): string => printable(JSON.stringify(value))
