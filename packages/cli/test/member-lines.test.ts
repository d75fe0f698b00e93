/** Lines with members, as programs and spreadsheets save them. */

import { Buffer } from "node:buffer"
import { Readable } from "node:stream"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type FileLine,
  type Reading,
  lineFromJson,
  readLines,
} from "../src/commands/member-lines.ts"
import { parseDateOrder } from "../src/commands/spreadsheet.ts"

const read = async (file: string | Buffer, reading: Reading = {}, size = 65_536) => {
  const bytes = Buffer.from(file)
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
  const lines: Array<FileLine> = []
  for await (const line of readLines(Readable.from(chunks), reading)) lines.push(line)
  return lines
}

const readJson = (...texts: ReadonlyArray<string>) => read(texts.join("\n"), { format: "ndjson" })

/** The refused lines with their reasons, and the others' ids. */
const outcome = async (file: string | Buffer, reading: Reading = {}) =>
  (await read(file, reading)).map((line) =>
    line._tag === "Member"
      ? line.user_id
      : line._tag === "Refused"
        ? `${line.line}: ${line.problem}`
        : line._tag,
  )

const latin1 = (text: string) => Buffer.from(text, "latin1")

describe("lines of JSON", () => {
  const member = (id: number | string, more = "") =>
    `{"user_id":"${id}","end_date":"2030-01-01"${more}}`
  const byNumber = (id: string) => `{"user_id":${id},"end_date":"2030-01-01"}`

  it("have user ids as numbers, which name the same users as the texts would", async () => {
    const ids = FastCheck.oneof(
      FastCheck.constantFrom("175928847299117063", "9007199254740993", "7", "0"),
      FastCheck.bigInt({ min: 0n, max: 10n ** 64n - 1n }).map(String),
    )
    await FastCheck.assert(
      FastCheck.asyncProperty(ids, async (user_id) => {
        const found = await readJson(byNumber(user_id))
        expect(found).toEqual([{ _tag: "Member", line: 1, user_id, through: "2030-01-01" }])
      }),
    )
  })

  it.each(["1e21", "1e400", "0.5", "-1", "-9007199254740993"])("%s is no user", async (id) => {
    const told = expect.stringMatching(/^1: user_id must be/)
    expect(await outcome(byNumber(id), { format: "ndjson" })).toEqual([told])
  })

  it("have metadata, whose texts may be numbers, but no objects", async () => {
    const noted = (metadata: unknown) => member(1, `,"metadata":${JSON.stringify(metadata)}`)
    const all = [{ plan: "gold", seat: 7 }, { plan: { a: 1 } }, "gold"]
    expect(await readJson(...all.map(noted))).toMatchObject([
      { metadata: { plan: "gold", seat: "7" } },
      { problem: "metadata.plan must be a text" },
      { problem: "metadata must be a JSON object of texts" },
    ])
  })

  it("have other fields, but none that is misnamed", async () => {
    const problem = 'metdata must be written "metadata"'
    const others = member(1, ',"email":"a","id":7,"state":"active"')
    expect(await readJson(member(1, ',"metdata":{}'), others)).toMatchObject([
      { _tag: "Refused", problem },
      { _tag: "Member", user_id: "1" },
    ])
    expect(await outcome("user_id,end_date,email\n1,2099-01-01,a\n")).toEqual(["1"])
    await expect(read("user_id,end_date,metdata\n1,2099-01-01,a\n")).rejects.toThrow(
      `In the first line, ${problem}`,
    )
  })

  it("may begin with a mark of the encoding", async () => {
    expect(await readJson(`\uFEFF${member(1)}`, member(2))).toMatchObject([
      { line: 1, user_id: "1" },
      { line: 2, user_id: "2" },
    ])
  })

  it("end at line feeds alone, however the file is divided into chunks", async () => {
    const texts = ["\u2028", "\u2029", "\u0085", "\\n"].map((one) =>
      member(2, `,"name":"a${one}b"`),
    )
    const kinds = [member(1), member("ä€😀"), "", "  ", "{", ...texts]
    const files = FastCheck.record({
      lines: FastCheck.array(FastCheck.constantFrom(...kinds)),
      size: FastCheck.integer({ min: 1, max: 50 }),
      end: FastCheck.constantFrom("\n", "\r\n"),
    })
    await FastCheck.assert(
      FastCheck.asyncProperty(files, async ({ end, lines, size }) => {
        const expected = lines.flatMap((text, index) =>
          text.trim() === "" ? [] : [lineFromJson(index + 1, text)],
        )
        const text = lines.map((line) => line + end).join("")
        expect(await read(text, { format: "ndjson" }, size)).toEqual(expected)
      }),
      { examples: [[{ lines: texts, size: 50, end: "\r\n" }]] },
    )
    for (const text of texts) expect(lineFromJson(1, text)).toMatchObject({ user_id: "2" })
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

const encodings: ReadonlyArray<(text: string) => Buffer> = [
  (text) => Buffer.from(text),
  (text) => Buffer.from(`\uFEFF${text}`),
  (text) => Buffer.from(`\uFEFF${text}`, "utf16le"),
  (text) => Buffer.from(text, "utf16le"),
  (text) => Buffer.from(`\uFEFF${text}`, "utf16le").swap16(),
  (text) => Buffer.from(text, "utf16le").swap16(),
]

describe("a file of a spreadsheet", () => {
  it("has the same members by every separator, encoding and line end, however it is divided", async () => {
    const texts = FastCheck.oneof(
      FastCheck.string({ maxLength: 8 }),
      FastCheck.constantFrom("Müller", "a\nb", 'say "hi"', "1,5", "a;b", "a\tb", "a|b", "日本"),
    ).map((text) => text.replaceAll("\r", ""))
    const files = FastCheck.record({
      names: FastCheck.array(texts, { maxLength: 6 }),
      separator: FastCheck.constantFrom(",", ";", "\t", "|"),
      encode: FastCheck.constantFrom(...encodings),
      end: FastCheck.constantFrom("\n", "\r\n"),
      isNamed: FastCheck.boolean(),
      size: FastCheck.integer({ min: 1, max: 100 }),
    })
    await FastCheck.assert(
      FastCheck.asyncProperty(files, async ({ encode, end, isNamed, names, separator, size }) => {
        const rows = names.map((name, index) =>
          [`"${name.replaceAll('"', '""')}"`, index, "2099-01-01"].join(separator),
        )
        const head = ["Name", "User ID", "End date"].join(separator)
        const text = [...(isNamed ? [`sep=${separator}`] : []), head, ...rows, ""].join(end)
        expect(await read(encode(text), {}, size)).toMatchObject(
          names.map((_, index) => ({ _tag: "Member", user_id: String(index) })),
        )
      }),
    )
  })

  it("loses no line but those with a misplaced quotation mark, wherever they are", async () => {
    const wrong = [
      '"open,2099-01-01,x',
      'id,2099-01-01,"x" y',
      '"id" x,2099-01-01,z',
      'id,2099-01-01,"x""',
    ]
    const kinds = FastCheck.array(FastCheck.constantFrom("good", ...wrong), { maxLength: 12 })
    const sizes = FastCheck.integer({ min: 1, max: 100 })
    await FastCheck.assert(
      FastCheck.asyncProperty(kinds, sizes, async (lines, size) => {
        const rows = lines.map((line, index) =>
          line === "good" ? `u${index},2099-01-01,"a\u00a0""b"""` : line,
        )
        const found = await read(["user_id,end_date,name", ...rows].join("\n"), {}, size)
        expect(found.map((line) => (line._tag === "Member" ? line.user_id : line.line))).toEqual(
          lines.map((line, index) => (line === "good" ? `u${index}` : index + 2)),
        )
      }),
    )
  })

  it("may have a quotation mark within a cell, or JSON as it is", async () => {
    const found = await read(
      [
        "user_id,end_date,metadata,name",
        '1,2099-01-01,{"plan":"gold"},5" pipe',
        '2,2099-01-01,{"a":"b","c":"d"},x',
        '3, 2099-01-01 , "{""plan"":""gold""}"  ,"a, b\nc"\n',
      ].join("\n"),
    )
    expect(found).toMatchObject([
      { user_id: "1", metadata: { plan: "gold" } },
      { line: 3, problem: expect.stringContaining("misplaced") },
      { line: 4, user_id: "3", metadata: { plan: "gold" } },
    ])
  })

  it("has no more cells than titles, because what moved a cell may have moved others", async () => {
    const file = "name,user_id,end_date\nSmith, 7,2099-01-01,2098-01-01\nSmith,8,2099-01-01,,\n"
    expect(await outcome(file)).toEqual([expect.stringMatching(/^2: it has more cells/), "8"])
  })

  it.each([
    ["line ends of old spreadsheets", "user_id,end_date\r1,2099-01-01\r2,2099-01-01\r"],
    [
      "empty lines and columns, and spaces of all kinds",
      ";;;\n\u00a0User\u00a0ID ;End date;;\n\u00a01 ;\u200e2099-01-01\u00a0;;\n;;;\n \n2;2099-01-01\n;;\n",
    ],
  ])("may have %s", async (_, file) => {
    expect(await outcome(file)).toEqual(["1", "2"])
  })

  it.each(["", "\uFEFF", "\r\n\r\n", "user_id;end_date"])("may be empty: %j", async (text) => {
    expect(await read(text)).toEqual([])
  })

  it("has records of bounded length", async () => {
    const long = "x\n".repeat(60_000)
    const found = await read(`user_id,end_date,name\n1,2099-01-01,"${long}\n2,2099-01-01,a`)
    expect(found[0]).toMatchObject({ line: 2, problem: "a quotation mark is not closed" })
    expect(found.at(-1)).toMatchObject({ user_id: "2" })
  })
})

describe("the encoding of a file", () => {
  it("may be Windows-1252, also if only the end of a long file tells", async () => {
    const many = Array.from({ length: 5000 }, (_, index) => `${index};2099-01-01;x`).join("\n")
    const file = latin1(`user_id;end_date;Name\n${many}\na;2099-01-01;M\u00fcller\n`)
    expect(await read(file)).toHaveLength(5001)
    const columns = new Map([["user_id", "Prüfnummer € 1"]] as const)
    const euro = latin1("Pr\u00fcfnummer \u0080 1;end_date\n7;2099-01-01")
    expect(await outcome(euro, { columns })).toEqual(["7"])
  })

  it("is guessed for nothing that is stored", async () => {
    const file = latin1(
      'user_id;end_date;metadata\n1;2099-01-01;"{""n"":""M\u00fcller""}"\n2;2099-01-01;"{""n"":""x""}"',
    )
    const unclear = expect.stringMatching(/^2: .*save the file as UTF-8/)
    expect(await outcome(file)).toEqual([unclear, "2"])
    const mixed = Buffer.concat([
      Buffer.from('user_id,end_date,metadata\né,2099-01-01,\n3,2099-01-01,{"n":"'),
      Buffer.of(0xfc),
      Buffer.from('"}\n4,2099-01-01,'),
    ])
    expect((await outcome(mixed)).slice(1)).toEqual([expect.stringMatching(/^3: .*not UTF-8/), "4"])
  })

  it.each([
    ["a spreadsheet", "PK\u0003\u0004xxxx", "save it as CSV"],
    ["an old spreadsheet", "\u00d0\u00cf\u0011\u00e0\u00a1", "save it as CSV"],
    ["compressed", "\u001f\u008b\b\0", "in zcat FILE"],
    ["xz", "\u00fd7zXZ\0", "in xzcat FILE"],
    ["bzip2", "BZh91AY&SY", "in bzcat FILE"],
    ["zstd", "(\u00b5/\u00fd\u0004", "in zstdcat FILE"],
    ["7z", "7z\u00bc\u00af'", "in 7z x -so FILE"],
    ["of zeros", "\0".repeat(10), "zero bytes"],
    ["an array", '[{"user_id":1}]', "each object on a line"],
  ])("is none if the file is %s, and the message says what to do", async (_, start, told) => {
    await expect(read(latin1(start))).rejects.toThrow(told)
  })
})

describe("the columns", () => {
  it.each(["User ID,End Date", "userId,endDate", "USER_ID,END-DATE", "user.id,End_Date"])(
    "may be spelled %s",
    async (titles) => {
      expect(await outcome(`${titles}\n1,2099-01-01`)).toEqual(["1"])
    },
  )

  it("of other names are listed, and mapped on request", async () => {
    const file = "Kundennummer;Ablaufdatum\n1;2099-01-01\n"
    await expect(read(file)).rejects.toThrow(
      /no user_id, no end_date.*"Kundennummer", "Ablaufdatum".*--map user_id=/,
    )
    const columns = new Map([
      ["user_id", "kundennummer"],
      ["end_date", "Ablaufdatum"],
    ] as const)
    for (const text of [file, '{"Kundennummer":1,"Ablaufdatum":"2099-01-01"}'])
      expect(await outcome(text, { columns })).toEqual(["1"])
    await expect(read(file, { columns: new Map([["end_date", "Ende"]]) })).rejects.toThrow(
      'There is no column "Ende" for --map end_date. There are "Kundennummer", "Ablaufdatum"',
    )
  })

  it("may have letters of a Mac, which writes ü as two characters", async () => {
    const columns = new Map([["end_date", "K\u00fcndigung"]] as const)
    expect(await outcome("user_id;Ku\u0308ndigung\n1;2099-01-01\n", { columns })).toEqual(["1"])
  })

  it("are one for each field", async () => {
    const columns = new Map([["user_id", "End date"]] as const)
    const told = '"End date" cannot be user_id and end_date'
    await expect(read("Nr;End date\n1;2099-01-01", { columns })).rejects.toThrow(told)
    const line = '{"Nr":1,"End date":"2099-01-01"}'
    expect(await outcome(line, { columns })).toEqual([expect.stringContaining(told)])
  })

  it("of a field may be there once, by its own name or else by another", async () => {
    expect(await read("user_id,User ID,userId,end_date\n1,2,3,2099-01-01")).toHaveLength(1)
    await expect(read("User ID,userId,end_date\n1,2,2099-01-01")).rejects.toThrow(
      'Two columns are user_id: "User ID" and "userId"',
    )
    await expect(read("user_id,user_id,end_date\n1,2,2099-01-01")).rejects.toThrow(
      "Two columns are user_id",
    )
    expect(await outcome('{"userId":1,"User ID":2,"end_date":"2099-01-01"}')).toEqual([
      "1: userId and User ID are both user_id: leave one out",
    ])
  })
})

describe("dates", () => {
  it("are never, or null in JSON, for life, but not missing", async () => {
    const ends = ["never", "Never", ' "never" ', '="never"', "", "null", "nevermore"]
    const cells = ends.map((end, index) => `${index},${end}`)
    const problem = expect.stringContaining("or never")
    const life = { end_date: null }
    const problems = [{ problem }, { problem }, { problem }]
    const found = await read(["user_id,end_date", ...cells].join("\n"))
    expect(found).toMatchObject([life, life, life, life, ...problems])
    const texts = ["null", '"never"', '""', "false"].map((end) => `{"user_id":1,"end_date":${end}}`)
    expect(await readJson(...texts, '{"user_id":1}')).toMatchObject([life, life, ...problems])
  })

  /** The last day, or why there is none. */
  const dateOf = async (date: string, format?: string) => {
    const dates = format === undefined ? undefined : parseDateOrder(format)
    const [line] = await read(`user_id;end_date\n1;${date}`, { dates })
    if (line?._tag === "Member") return line.through ?? null
    return line?._tag === "Refused" ? line.problem : undefined
  }

  const says = (format: string) => expect.stringContaining(`as --dates ${format} says`)

  it.each([
    ["DD.MM.YYYY", "31.01.2027", "2027-01-31"],
    ["dd.mm.yyyy", "31. 1. 2027", "2027-01-31"],
    ["D.M.YYYY", "31.1.2027 00:00:00", "2027-01-31"],
    ["MM/DD/YYYY", "1/31/2027", "2027-01-31"],
    ["MM/DD/YYYY", "01/31/2027 12:00:00 AM", "2027-01-31"],
    ["DD/MM/YYYY", "31/01/2027 0:00", "2027-01-31"],
    ["DD-MM-YYYY", "31-01-2027", "2027-01-31"],
    ["YYYY/MM/DD", "2027/1/31", "2027-01-31"],
    ["DD.MM.YYYY", "2027-01-31", "2027-01-31"],
    ["MM/DD/YYYY", "31/01/2027", says("MM/DD/YYYY")],
    ["DD.MM.YYYY", "30.02.2027", says("DD.MM.YYYY")],
    ["DD.MM.YYYY", "31.01.2027 14:30", says("DD.MM.YYYY")],
    ["DD.MM.YYYY", "31/01/2027", says("DD.MM.YYYY")],
  ])("as %s, %s is %s", async (format, date, found) => {
    expect(await dateOf(date, format)).toEqual(found)
  })

  it.each([
    ["31.01.2027", "--dates DD.MM.YYYY"],
    ["01/02/2027", "--dates MM/DD/YYYY if the month comes first, or --dates DD/MM/YYYY"],
    ["01-02-2027", "--dates DD-MM-YYYY"],
    ["2027/01/31", "--dates YYYY/MM/DD"],
    ["31.01.27", "a year of four digits"],
    ["46417", "a count of days"],
    ["46417,5", "a count of days"],
    ["1800000000", "in milliseconds"],
    ["1.80E+12", "rounded"],
    ["2027-01-31 14:30:00", "in UTC that ends in Z"],
    ["tomorrow", "--dates"],
    ["", "end_date must be a date"],
  ])("without an order, %s is refused, and the reason says what to do", async (date, told) => {
    expect(await dateOf(date)).toContain(told)
  })

  it("alone are the last day, also in a column or field of their own", async () => {
    const rows = ["1,2098-01-31,,,", "2,,2098-01-31,UTC,", "3,,2098-02-28,Europe/Berlin,30"]
    const text = ["user_id,end_date,through,Time zone,kept_day", ...rows].join("\n")
    const expected = [
      { user_id: "1", through: "2098-01-31" },
      { user_id: "2", through: "2098-01-31", time_zone: "UTC" },
      { user_id: "3", through: "2098-02-28", time_zone: "Europe/Berlin", kept_day: 30 },
    ]
    const plain = (lines: ReadonlyArray<FileLine>) =>
      lines.map(({ _tag, line: _, ...rest }) => JSON.parse(JSON.stringify(rest)))
    expect(plain(await read(text))).toEqual(expected)
    expect(plain(await readJson(...expected.map((one) => JSON.stringify(one))))).toEqual(expected)
    const dates = parseDateOrder("DD.MM.YYYY")
    const german = await read("user_id;through\n1;31.01.2098", { dates })
    expect(german).toMatchObject([{ through: "2098-01-31" }])
    const zoned = [{ ...expected[0], time_zone: "Asia/Tokyo" }, ...expected.slice(1)]
    expect(plain(await read(text, { timeZone: "Asia/Tokyo" }))).toEqual(zoned)
  })

  it("of a pause are instants", async () => {
    const [paused_at, resumes_at] = ["2027-01-31T12:00:00.000Z", "2027-02-28T12:00:00.000Z"]
    const member = { user_id: "1", end_date: "2098-01-31T12:00:00.000Z" }
    const row = `1,${member.end_date},${paused_at}`
    const head = "user_id,end_date,paused_at,resumes_at"
    const found = await read(`${head}\n${row},${resumes_at}\n${row},\n`)
    const paused = { ...member, paused_at }
    expect(found).toEqual([
      { _tag: "Member", line: 2, ...paused, resumes_at },
      { _tag: "Member", line: 3, ...paused },
    ])
    const nulls = { ...member, paused_at: null, resumes_at: null }
    const lines = await readJson(JSON.stringify({ ...paused, resumes_at }), JSON.stringify(nulls))
    expect(lines).toEqual([
      { _tag: "Member", line: 1, ...paused, resumes_at },
      { _tag: "Member", line: 2, ...member },
    ])
    const told = (field: string) =>
      `1: ${field} must be an instant, such as 2027-01-31T12:00:00.000Z`
    for (const wrong of ["2027-01-31", "soon"]) {
      const since = JSON.stringify({ ...member, paused_at: wrong })
      expect(await outcome(since)).toEqual([told("paused_at")])
      const until = JSON.stringify({ ...paused, resumes_at: wrong })
      expect(await outcome(until)).toEqual([told("resumes_at")])
    }
  })

  it("that are instants have no use for a time zone, and null and empty cells say nothing", async () => {
    const end_date = "2098-01-31T12:00:00.000Z"
    const more = { time_zone: "UTC", through: null, kept_day: null }
    const found = await readJson(
      JSON.stringify({ user_id: 1, end_date, ...more }),
      JSON.stringify({ user_id: 1, end_date: null, ...more }),
      JSON.stringify({ user_id: 1, end_date, kept_day: 31 }),
    )
    const [first, second, third] = found.map((one) => JSON.parse(JSON.stringify(one)))
    expect(first).toEqual({ _tag: "Member", line: 1, user_id: "1", end_date })
    expect(second).toEqual({ _tag: "Member", line: 2, user_id: "1", end_date: null })
    expect(third).toMatchObject({ end_date, kept_day: 31 })
  })

  it.each([
    ["2098-01-31", "2098-01-31", "", "end_date and through are two dates: leave one out"],
    ["9999-12-31", "", "", "9999-12-31 has no end: write never in end_date for a member for life"],
    ["", "2098-02-30", "", "through must be a day such as 2027-01-31"],
    ["", "2098-01-31T00:00:00.000Z", "", "through must be a day such as 2027-01-31"],
    ["2098-01-31", "", "0", "kept_day must be a whole number from 1 to 31"],
    ["2098-01-31", "", "32", "kept_day must be a whole number from 1 to 31"],
  ])("'%s' and '%s', kept '%s', are refused: %s", async (end_date, through, kept_day, told) => {
    const text = `user_id,end_date,through,kept_day\n1,${end_date},${through},${kept_day}`
    expect(await outcome(text)).toEqual([`2: ${told}`])
    const given = Object.entries({ end_date, through, kept_day }).filter(([, one]) => one !== "")
    const object = { user_id: "1", ...Object.fromEntries(given) }
    expect(await outcome(JSON.stringify(object))).toEqual([`1: ${told}`])
  })

  it.each(["DD.MM", "DD.MM.YY", "MM/MM/YYYY", "DD.MM/YYYY", "YYYY", "DDMMYYYY"])(
    "are not written %s",
    (format) => {
      expect(parseDateOrder(format)).toBeUndefined()
    },
  )
})

describe("ids that a spreadsheet has changed", () => {
  const idOf = async (id: string) => (await outcome(`user_id;end_date\n${id};2099-01-01`))[0]

  const changed =
    "1.75929E+17 1,75929e+17 1E+20 1.75929E17 175.929E+15 #N/A #N/D #NV #BEZUG! #NOM? #ERROR! " +
    "Err:502 ######## 1,234 1,234,567.00 1.234.567 1001.0 175928847299117000 1000000000000000"

  it.each(changed.split(" "))("such as %s are refused", async (id) => {
    expect(await idOf(id)).toMatch(/^2: user_id /)
  })

  const whole = "175928847299117063 100000000000000 5e3 12E45 007 1.5 1.234 1,23 #a #1"

  it.each(whole.split(" "))("are not %s", async (id) => {
    expect(await idOf(id)).toBe(id)
  })

  it("are none in a file whose ids have more digits than a spreadsheet keeps", async () => {
    const ids = ["175928847299117063", "175928847299117000"]
    const rows = ids.map((id) => `${id},2099-01-01`)
    expect(await outcome(["user_id,end_date", ...rows].join("\n"))).toEqual(ids)
  })

  it("may be marked as text", async () => {
    expect(await idOf('="0017"')).toBe("0017")
    expect(await idOf('"=""175928847299117000"""')).toBe("175928847299117000")
  })
})
