import { describe, expect, it } from "vitest"
import { makeFindInHosts, parseHosts } from "../src/transport.ts"

const loopback = { address: "127.0.0.1", family: 4 }
const loopback6 = { address: "::1", family: 6 }

describe("a hosts file", () => {
  it("may list several names for an address, and several addresses for a name", () => {
    const table = parseHosts("127.0.0.1\tlocalhost  app\n::1 localhost\r\n10.0.0.1 db\n")
    expect(table.get("localhost")).toEqual([loopback, loopback6])
    expect(table.get("app")).toEqual([loopback])
    expect(table.get("db")).toEqual([{ address: "10.0.0.1", family: 4 }])
  })

  it("may contain comments, capitals and repeated names", () => {
    const table = parseHosts("# 10.0.0.1 old\n127.0.0.1 App APP # 127.0.0.1 no\n  ::1 app")
    expect([...table]).toEqual([["app", [loopback, loopback6]]])
  })

  it("may contain lines that are not valid, which are ignored", () => {
    expect(parseHosts("localhost 127.0.0.1\n127.0.0.300 app\n127.0.0.1\n\n").size).toBe(0)
  })
})

describe("looking up names in the hosts file", () => {
  /** A hosts file that changes with each reading, and a clock that the test sets. */
  const changing = (...texts: ReadonlyArray<string>) => {
    const clock = { now: 0 }
    let readings = 0
    const read = async (): Promise<string> => texts[readings++] ?? ""
    const find = makeFindInHosts(read, () => clock.now)
    return { clock, find, readings: () => readings }
  }

  it("reads the file once for all look-ups within five seconds", async () => {
    const { clock, find, readings } = changing("127.0.0.1 a b")
    expect(await Promise.all([find("a"), find("b"), find("c")])).toEqual([
      [loopback],
      [loopback],
      [],
    ])
    clock.now = 4999
    expect(await find("a")).toEqual([loopback])
    expect(readings()).toBe(1)
  })

  it("sees a change after five seconds", async () => {
    const { clock, find, readings } = changing("127.0.0.1 a", "::1 a")
    expect(await find("a")).toEqual([loopback])
    clock.now = 5000
    expect(await find("a")).toEqual([loopback6])
    expect(readings()).toBe(2)
  })

  it("treats a file that cannot be read as empty, and tries again after five seconds", async () => {
    const clock = { now: 0 }
    const outcomes = [Promise.reject(new Error("EACCES")), Promise.resolve("127.0.0.1 a")]
    const find = makeFindInHosts(
      () => outcomes.shift() ?? Promise.resolve(""),
      () => clock.now,
    )
    expect(await find("a")).toEqual([])
    clock.now = 5000
    expect(await find("a")).toEqual([loopback])
  })
})
