/** Files with members as spreadsheets save them. */

import { Buffer } from "node:buffer"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { type FileLine, type Reading, readLines } from "../src/commands/member-lines.ts"
import { parseDateOrder } from "../src/commands/spreadsheet.ts"

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

const read = async (file: string | Buffer, reading: Reading = {}, size = 65_536) => {
  const lines: Array<FileLine> = []
  for await (const line of readLines(chunksOf(Buffer.from(file), size), reading)) lines.push(line)
  return lines
}

/** The refused lines with their reasons, and the ids of the others. */
const outcome = async (file: string | Buffer, reading: Reading = {}) =>
  (await read(file, reading)).map((line) =>
    line._tag === "Member"
      ? line.user_id
      : line._tag === "Refused"
        ? `${line.line}: ${line.problem}`
        : line._tag,
  )

const dates = (format: string): Reading => ({ dates: parseDateOrder(format) })

const encodings = {
  "UTF-8": (text: string) => Buffer.from(text),
  "UTF-8 with a mark": (text: string) => Buffer.from(`\uFEFF${text}`),
  "UTF-16LE with a mark": (text: string) => Buffer.from(`\uFEFF${text}`, "utf16le"),
  "UTF-16LE": (text: string) => Buffer.from(text, "utf16le"),
  "UTF-16BE with a mark": (text: string) => Buffer.from(`\uFEFF${text}`, "utf16le").swap16(),
  "UTF-16BE": (text: string) => Buffer.from(text, "utf16le").swap16(),
} as const

const separators = [",", ";", "\t", "|"] as const

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

describe("a file of a spreadsheet", () => {
  it("has the same members by every separator, encoding and line end, however it is divided", async () => {
    const texts = FastCheck.oneof(
      FastCheck.string({ maxLength: 8 }),
      FastCheck.constantFrom("Müller", "a\nb", 'say "hi"', "1,5", "a;b", "a\tb", "a|b", "日本"),
    )
    const files = FastCheck.record({
      names: FastCheck.array(
        texts.map((text) => text.replaceAll("\r", "")),
        { maxLength: 6 },
      ),
      separator: FastCheck.constantFrom(...separators),
      encoding: FastCheck.constantFrom(...Object.values(encodings)),
      end: FastCheck.constantFrom("\n", "\r\n"),
      isNamed: FastCheck.boolean(),
      size: FastCheck.integer({ min: 1, max: 100 }),
    })
    await FastCheck.assert(
      FastCheck.asyncProperty(files, async ({ encoding, end, isNamed, names, separator, size }) => {
        const rows = names.map((name, index) => [quoted(name), String(index), "2099-01-01"])
        const text = [
          ...(isNamed ? [`sep=${separator}`] : []),
          ["Name", "User ID", "End date"].join(separator),
          ...rows.map((row) => row.join(separator)),
          "",
        ].join(end)
        expect(await read(encoding(text), {}, size)).toMatchObject(
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
    const files = FastCheck.record({
      lines: FastCheck.array(FastCheck.constantFrom("good", ...wrong), { maxLength: 12 }),
      size: FastCheck.integer({ min: 1, max: 100 }),
    })
    await FastCheck.assert(
      FastCheck.asyncProperty(files, async ({ lines, size }) => {
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
    const [first, second, third] = await read(
      'user_id,end_date,metadata,name\n1,2099-01-01,{"plan":"gold"},5" pipe\n2,2099-01-01,{"a":"b","c":"d"},x\n3, 2099-01-01 , "{""plan"":""gold""}"  ,"a, b\nc"\n',
    )
    expect(first).toMatchObject({ user_id: "1", metadata: { plan: "gold" } })
    expect(second).toMatchObject({ line: 3, problem: expect.stringContaining("misplaced") })
    expect(third).toMatchObject({ line: 4, user_id: "3", metadata: { plan: "gold" } })
  })

  it("has no more cells than titles, because what moved a cell may have moved others", async () => {
    const file = "name,user_id,end_date\nSmith, 7,2099-01-01,2098-01-01\nSmith,8,2099-01-01,,\n"
    expect(await outcome(file)).toEqual([expect.stringMatching(/^2: it has more cells/), "8"])
  })

  it("has line ends of old spreadsheets, empty lines and columns, and spaces of all kinds", async () => {
    expect(await outcome("user_id,end_date\r1,2099-01-01\r2,2099-01-01\r")).toEqual(["1", "2"])
    const padded =
      ";;;\n\u00a0User\u00a0ID ;End date;;\n\u00a01 ;\u200e2099-01-01\u00a0;;\n;;;\n \n2;2099-01-01\n;;\n"
    expect(await outcome(padded)).toEqual(["1", "2"])
  })

  it("may be empty", async () => {
    for (const text of ["", "\uFEFF", "\r\n\r\n", "user_id;end_date"])
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
  const latin1 = (text: string) => Buffer.from(text, "latin1")

  it("may be Windows-1252, also if only the end of a long file tells", async () => {
    const many = Array.from({ length: 5000 }, (_, index) => `${index};2099-01-01;x`).join("\n")
    const file = latin1(`user_id;end_date;Name\n${many}\na;2099-01-01;M\u00fcller\n`)
    expect(await read(file)).toHaveLength(5001)
    const columns = new Map([["user_id", "Prüfnummer € 1"]] as const)
    const euro = Buffer.concat([
      latin1("Pr\u00fcfnummer "),
      Buffer.of(0x80),
      latin1(" 1;end_date\n7;2099-01-01"),
    ])
    expect(await outcome(euro, { columns })).toEqual(["7"])
  })

  it("is guessed for nothing that is stored", async () => {
    const file = latin1(
      'user_id;end_date;metadata\n1;2099-01-01;"{""n"":""M\u00fcller""}"\n2;2099-01-01;"{""n"":""x""}"',
    )
    expect(await outcome(file)).toEqual([
      expect.stringMatching(/^2: .*save the file as UTF-8/),
      "2",
    ])
    const mixed = Buffer.concat([
      Buffer.from('user_id,end_date,metadata\né,2099-01-01,\n3,2099-01-01,{"n":"'),
      Buffer.of(0xfc),
      Buffer.from('"}\n4,2099-01-01,'),
    ])
    expect((await outcome(mixed)).slice(1)).toEqual([expect.stringMatching(/^3: .*not UTF-8/), "4"])
  })

  it.each([
    { what: "a spreadsheet", start: Buffer.from("PK\u0003\u0004xxxx"), says: "save it as CSV" },
    {
      what: "an old spreadsheet",
      start: Buffer.of(0xd0, 0xcf, 0x11, 0xe0, 0xa1),
      says: "save it as CSV",
    },
    { what: "compressed", start: Buffer.of(0x1f, 0x8b, 8, 0), says: "in zcat FILE" },
    { what: "xz", start: Buffer.of(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0), says: "in xzcat FILE" },
    { what: "bzip2", start: Buffer.from("BZh91AY&SY"), says: "in bzcat FILE" },
    { what: "zstd", start: Buffer.of(0x28, 0xb5, 0x2f, 0xfd, 4), says: "in zstdcat FILE" },
    { what: "7z", start: Buffer.of(0x37, 0x7a, 0xbc, 0xaf, 0x27), says: "in 7z x -so FILE" },
    { what: "of zeros", start: Buffer.alloc(10), says: "zero bytes" },
    { what: "an array", start: Buffer.from('[{"user_id":1}]'), says: "each object on a line" },
  ])("is none if the file is $what, and the message says what to do", async ({ says, start }) => {
    await expect(read(start)).rejects.toThrow(says)
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
    expect(await outcome(file, { columns })).toEqual(["1"])
    expect(await outcome('{"Kundennummer":1,"Ablaufdatum":"2099-01-01"}', { columns })).toEqual([
      "1",
    ])
    await expect(read(file, { columns: new Map([["end_date", "Ende"]]) })).rejects.toThrow(
      'There is no column "Ende" for --map end_date. There are "Kundennummer", "Ablaufdatum"',
    )
  })

  it("may have letters of a Mac, which writes ü as two characters", async () => {
    const file = "user_id;Ku\u0308ndigung\n1;2099-01-01\n"
    expect(await outcome(file, { columns: new Map([["end_date", "K\u00fcndigung"]]) })).toEqual([
      "1",
    ])
  })

  it("are one for each field", async () => {
    const same = new Map([["user_id", "End date"]] as const)
    await expect(read("Nr;End date\n1;2099-01-01", { columns: same })).rejects.toThrow(
      '"End date" cannot be user_id and end_date',
    )
    const [line] = await read('{"Nr":1,"End date":"2099-01-01"}', { columns: same })
    expect(line).toMatchObject({
      problem: expect.stringContaining('"End date" cannot be user_id and end_date'),
    })
  })

  it("of a field may be there once", async () => {
    await expect(read("user_id,User ID,userId,end_date\n1,2,3,2099-01-01")).resolves.toHaveLength(1)
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
  const dateOf = async (date: string, reading: Reading = {}) => {
    const [line] = await read(`user_id;end_date\n1;${date}`, reading)
    return line?._tag === "Member"
      ? line.end_date.slice(0, 10)
      : line?._tag === "Refused"
        ? line.problem
        : undefined
  }

  it.each([
    ["DD.MM.YYYY", "31.01.2027"],
    ["dd.mm.yyyy", "31. 1. 2027"],
    ["D.M.YYYY", "31.1.2027 00:00:00"],
    ["MM/DD/YYYY", "1/31/2027"],
    ["MM/DD/YYYY", "01/31/2027 12:00:00 AM"],
    ["DD/MM/YYYY", "31/01/2027 0:00"],
    ["DD-MM-YYYY", "31-01-2027"],
    ["YYYY/MM/DD", "2027/1/31"],
    ["DD.MM.YYYY", "2027-01-31"],
  ])("as %s, %s is 31 January 2027", async (format, date) => {
    expect(await dateOf(date, dates(format))).toBe("2027-01-31")
  })

  it.each([
    ["MM/DD/YYYY", "31/01/2027"],
    ["DD.MM.YYYY", "30.02.2027"],
    ["DD.MM.YYYY", "31.01.2027 14:30"],
    ["DD.MM.YYYY", "31/01/2027"],
  ])("as %s, %s is none", async (format, date) => {
    expect(await dateOf(date, dates(format))).toContain(`as --dates ${format} says`)
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
  ])("without an order, %s is refused, and the reason says what to do", async (date, says) => {
    expect(await dateOf(date)).toContain(says)
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

  it.each([
    "1.75929E+17",
    "1,75929e+17",
    "1E+20",
    "1.75929E17",
    "175.929E+15",
    "#N/A",
    "#N/D",
    "#NV",
    "#BEZUG!",
    "#NOM?",
    "#ERROR!",
    "Err:502",
    "########",
    "1,234",
    "1,234,567.00",
    "1.234.567",
    "1001.0",
    "175928847299117000",
    "1000000000000000",
  ])("such as %s are refused", async (id) => {
    expect(await idOf(id)).toMatch(/^2: user_id /)
  })

  it.each([
    "175928847299117063",
    "100000000000000",
    "5e3",
    "12E45",
    "007",
    "1.5",
    "1.234",
    "1,23",
    "#a",
    "#1",
  ])("are not %s", async (id) => {
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
