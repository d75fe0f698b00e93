/** Prints Markdown. */

/** Escapes text, except code in backticks. */
export const prose = (text: string): string =>
  text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith("`") ? part : part.replaceAll("<", "&lt;")))
    .join("")

const rowOf = (cells: ReadonlyArray<string>): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`

/** Prints a table; none without rows. */
export const table = (
  titles: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
): string =>
  rows.length === 0 ? "" : [titles, titles.map(() => "---"), ...rows].map(rowOf).join("\n")

/** Prints an example: text as it is, and any other value as JSON. */
export const sample = (value: unknown): string =>
  `\`\`\`json\n${typeof value === "string" ? value.trimEnd() : JSON.stringify(value, undefined, 2)}\n\`\`\``

/** Joins paragraphs, omitting empty ones. */
export const paragraphs = (...parts: ReadonlyArray<string>): string =>
  parts.filter((part) => part !== "").join("\n\n")

/** Removes code blocks and code in backticks from Markdown. */
export const withoutCode = (markdown: string): string =>
  markdown.replaceAll(/^ *```.*?^ *```$/gms, "").replaceAll(/`[^`\n]*`/g, "``")
