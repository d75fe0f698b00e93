/** Text that a terminal shows as it is. */

// Line breaks and tabs may stay. Other control characters, and those that reorder or hide text, can
// make a terminal show something else.
const unprintable = /[^\P{C}\n\t]/gu

// What most lines are, told in less than half the time.
const plain = /^[\x20-\x7e]*$/

const escape = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`,
  ).join("")

/** Escapes characters that a terminal does not show as they are, as JSON does. */
export const printable = (text: string): string =>
  plain.test(text) ? text : text.replaceAll(unprintable, escape)
