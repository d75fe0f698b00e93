/** The lines of files with members, as they are read. */

import { Readable } from "node:stream"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { type FileLine, lineFromJson, readLines } from "../src/commands/member-lines.ts"
import type { Format } from "../src/commands/members-export.ts"

const end_date = "2030-01-01T00:00:00.000Z"

const linesOf = async (format: Format, ...chunks: ReadonlyArray<string | Buffer>) => {
  const lines: Array<FileLine> = []
  const source = Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
  for await (const line of readLines(source, { format })) lines.push(line)
  return lines
}

describe("user ids that are JSON numbers", () => {
  it.each(["175928847299117063", "9007199254740993", "123456789012345678901234567890", "7", "0"])(
    "%s is that user",
    async (id) => {
      const line = `{"user_id":${id},"end_date":"2030-01-01"}`
      expect(await linesOf("ndjson", line)).toEqual([
        { _tag: "Member", line: 1, user_id: id, end_date },
      ])
    },
  )

  it("name the same users as the texts would, whatever the digits are", async () => {
    const digits = FastCheck.bigInt({ min: 0n, max: 10n ** 64n - 1n }).map(String)
    await FastCheck.assert(
      FastCheck.asyncProperty(digits, async (id) => {
        const [given] = await linesOf("ndjson", `{"user_id":${id},"end_date":"2030-01-01"}`)
        expect(given).toMatchObject({ user_id: id })
      }),
    )
  })

  it.each(["1e21", "1e400", "0.5", "-1", "-9007199254740993"])("%s is no user", async (id) => {
    const line = `{"user_id":${id},"end_date":"2030-01-01"}`
    expect(await linesOf("ndjson", line)).toMatchObject([
      { _tag: "Refused", line: 1, problem: expect.stringContaining("user_id must be") },
    ])
  })
})

describe("lines of JSON", () => {
  const member = (id: number | string, more = "") =>
    `{"user_id":"${id}","end_date":"2030-01-01"${more}}`

  it("have metadata, whose texts may be numbers, but no objects", async () => {
    const noted = (metadata: unknown) => member(1, `,"metadata":${JSON.stringify(metadata)}`)
    const metadata = { plan: "gold", seat: 7 }
    const read = await linesOf(
      "ndjson",
      [metadata, { plan: { a: 1 } }, "gold"].map(noted).join("\n"),
    )
    expect(read).toMatchObject([
      { metadata: { plan: "gold", seat: "7" } },
      { problem: "metadata.plan must be a text" },
      { problem: "metadata must be a JSON object of texts" },
    ])
  })

  it("may begin with a mark of the encoding", async () => {
    expect(await linesOf("ndjson", `\uFEFF${member(1)}\n${member(2)}`)).toMatchObject([
      { line: 1, user_id: "1" },
      { line: 2, user_id: "2" },
    ])
  })

  it("end at line feeds alone, so texts may have every other separator", async () => {
    const separators = ["\u2028", "\u2029", "\u0085", "\\n"]
    const lines = separators.map((separator, index) => member(index, `,"name":"a${separator}b"`))
    expect(await linesOf("ndjson", lines.join("\r\n"))).toMatchObject(
      separators.map((_, index) => ({ _tag: "Member", line: index + 1, user_id: String(index) })),
    )
  })

  it("are the same however the file is divided into chunks, with their numbers", async () => {
    const kinds = [member(1), member("ä€😀"), "", "  ", "{", member(2, `,"x":"\u2028"`)]
    const files = FastCheck.record({
      lines: FastCheck.array(FastCheck.constantFrom(...kinds)),
      size: FastCheck.integer({ min: 1, max: 50 }),
      end: FastCheck.constantFrom("\n", "\r\n"),
    })
    await FastCheck.assert(
      FastCheck.asyncProperty(files, async ({ end, lines, size }) => {
        const bytes = Buffer.from(lines.map((line) => line + end).join(""))
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        )
        const expected = lines.flatMap((text, index) =>
          text.trim() === "" ? [] : [lineFromJson(index + 1, text)],
        )
        expect(await linesOf("ndjson", ...chunks)).toEqual(expected)
      }),
    )
  })

  it("are at most 1 MiB long, and no more of a longer one is read", async () => {
    let chunks = 0
    const source = Readable.from(
      (function* () {
        yield Buffer.from(`${member(1)}\n`)
        while (chunks < 500) {
          chunks += 1
          yield Buffer.alloc(1 << 16, 0x20)
        }
      })(),
    )
    const lines = readLines(source, { format: "ndjson" })
    expect((await lines.next()).value).toMatchObject({ user_id: "1" })
    await expect(lines.next()).rejects.toThrow("Line 2 is longer than 1 MiB")
    expect(chunks).toBeLessThan(50)
  })
})

describe("misnamed fields", () => {
  const problem = 'metdata must be written "metadata"'

  it("are refused, and others are ignored", async () => {
    const line = (fields: object) => JSON.stringify({ user_id: "1", end_date, ...fields })
    const lines = [line({ metdata: {} }), line({ email: "a", id: 7, state: "active" })]
    expect(await linesOf("ndjson", lines.join("\n"))).toMatchObject([
      { _tag: "Refused", problem },
      { _tag: "Member", user_id: "1" },
    ])
    const csv = `user_id,end_date,email\n1,${end_date},a\n`
    expect(await linesOf("csv", csv)).toMatchObject([{ _tag: "Member", user_id: "1" }])
    await expect(linesOf("csv", csv.replace("email", "metdata"))).rejects.toThrow(
      `In the first line, ${problem}`,
    )
  })
})
