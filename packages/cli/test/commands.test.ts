/** The commands, against the bundled server, and some on a database. */

import { execFile } from "node:child_process"
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { startReceiver } from "@tenure/testing/conformance"
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest"
import { withoutPassword } from "../src/support/target.ts"
import { json, lines, testCommands } from "./commands.ts"
import { startWith, tenureWith } from "./in-process.ts"
import { bareEnvironment, command, commandFromSource } from "./programs.ts"
import { startProxy } from "./proxy.ts"
import { type Server, startServer, token } from "./server.ts"

let server: Server
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tenure-cli-"))
  const { TENURE_DATABASE_URL: url, TENURE_SCHEMA: schema } = database
  const tenure = await createTenure({ stores: postgres({ url, schema }) })
  await tenure.close()
  server = await startServer()
})

afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const atServer = (...args: ReadonlyArray<string>) =>
  tenureWith({ TENURE_URL: server.url, TENURE_TOKEN: token, XDG_CONFIG_HOME: folder })(...args)

const database = { TENURE_DATABASE_URL: inject("databaseUrl"), TENURE_SCHEMA: "cli" }

const onDatabase = (...args: ReadonlyArray<string>) =>
  tenureWith({ ...database, XDG_CONFIG_HOME: folder })(...args)

describe("at a server", () => {
  testCommands(atServer)
})

it("works on a database as at a server", async () => {
  const print = async (...args: ReadonlyArray<string>) => (await onDatabase(...args)).stdout
  expect(await print("projects", "create", "direct")).toBe("Created the project direct.\n")
  await print("members", "grant", "1", "2098-01-01", "-p", "direct", "--reason", "a test")
  const dry = ["extend-all", "direct", "--by", "P1D", "--dry-run", "--json"]
  expect(json(await print(...dry))).toMatchObject({ total: 1 })
  expect(lines(await print("audit", "direct", "--json"))).toMatchObject([
    { action: "granted", user_id: "1", reason: "a test" },
  ])
  expect(await onDatabase("members", "get", "2", "-p", "direct")).toMatchObject({ code: 3 })
})

describe("as a process, the command prints, and ends with its exit code:", () => {
  it.each([
    { from: "bundled", program: command() },
    { from: "from source", program: commandFromSource() },
  ])("$from", async ({ program: [node = "", ...args] }) => {
    const env = { ...bareEnvironment, TENURE_URL: server.url, TENURE_TOKEN: token }
    const run = promisify(execFile)
    const failed = run(node, [...args, "projects", "get", "none", "--json"], { env })
    await expect(failed).rejects.toMatchObject({
      code: 3,
      stdout: "",
      stderr: expect.stringContaining("PROJECT_NOT_FOUND"),
    })
  })
})

describe("trigger leaves no member", () => {
  const none = "There are none.\n"

  const listed = async (project: string) =>
    (await onDatabase("members", "list", "-p", project)).stdout

  it("when it is interrupted", async () => {
    await onDatabase("projects", "create", "interrupted")
    // No server announces anything here, so it waits.
    const args = ["trigger", "membership.expired", "-p", "interrupted"]
    const running = startWith({ ...database, XDG_CONFIG_HOME: folder })(...args)
    await expect.poll(() => listed("interrupted")).not.toBe(none)
    await running.interrupt()
    expect(await listed("interrupted")).toBe(none)
  })

  it("when what it does fails", async () => {
    await atServer("projects", "create", "failing")
    const proxy = await startProxy(server.url, ({ method }, response) => {
      if (method !== "PATCH") return "passed"
      response.writeHead(403).end()
      return "kept"
    })
    const failing = tenureWith({ TENURE_URL: proxy, TENURE_TOKEN: token })
    expect(await failing("trigger", "membership.extended", "-p", "failing")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("403"),
    })
    expect((await atServer("members", "list", "-p", "failing")).stdout).toBe(none)
  })

  it("but those who are members otherwise", async () => {
    await onDatabase("projects", "create", "kept")
    await onDatabase("trigger", "membership.granted", "-p", "kept")
    await onDatabase("members", "grant", "0", "2099-01-01", "-p", "kept")
    expect(await onDatabase("trigger", "membership.granted", "-p", "kept")).toMatchObject({
      code: 1,
      stderr: "0 is already a member. Pass a --user that is not.\n",
    })
    expect(await listed("kept")).toContain("2099")
  })
})

it("triggers the disabling of a webhook without leaving one", async () => {
  await atServer("projects", "create", "disabling")
  const { close, received, until, url } = await startReceiver()
  onTestFinished(close)
  await atServer("webhooks", "create", url, "-p", "disabling", "--type", "webhook.disabled")
  expect(await atServer("trigger", "webhook.disabled", "-p", "disabling")).toMatchObject({
    code: 0,
  })
  await until(1)
  expect(received[0]?.body).toContain("webhook.disabled")
  expect(lines((await atServer("webhooks", "list", "-p", "disabling", "--json")).stdout)).toEqual([
    expect.objectContaining({ url, disabled_at: null }),
  ])
})

it.each(["membership.expiring", "membership.expired"])(
  "triggers %s without leaving a member",
  async (type) => {
    await atServer("projects", "create", "ends")
    expect(await atServer("trigger", type, "-p", "ends")).toMatchObject({ code: 0 })
    expect((await atServer("members", "list", "-p", "ends")).stdout).toBe("There are none.\n")
    const { stdout } = await atServer("members", "history", "0", "-p", "ends")
    expect(stdout).toContain(type.replace("membership.", ""))
  },
)

describe("webhooks", () => {
  it("are created, pinged, rotated and deleted, and their secret is hidden", async () => {
    const { close, received, until, url } = await startReceiver()
    onTestFinished(close)
    await atServer("projects", "create", "hooks")
    const created = json(
      (await atServer("webhooks", "create", url, "-p", "hooks", "--json")).stdout,
    )
    if (
      typeof created !== "object" ||
      created === null ||
      !("id" in created && "secret" in created)
    )
      expect.fail("no webhook")
    const [id, secret] = [String(created.id), String(created.secret)]
    const about = [id, "-p", "hooks"]

    await atServer("webhooks", "ping", ...about)
    await until(1)
    const [ping] = received
    if (ping === undefined) expect.fail("no ping")

    for (const args of [
      ["list", "-p", "hooks"],
      ["get", ...about],
    ]) {
      expect((await atServer("webhooks", ...args)).stdout).toContain(id)
      expect((await atServer("webhooks", ...args)).stdout).not.toContain(secret)
      expect((await atServer("webhooks", ...args, "--json")).stdout).not.toContain(secret)
    }
    expect((await atServer("webhooks", "get", ...about, "--show-secret")).stdout).toContain(secret)

    const body = join(folder, "body.json")
    writeFileSync(body, ping.body)
    const withSecret = tenureWith({ TENURE_WEBHOOK_SECRET: secret })
    const { headers } = ping
    const about2 = ["--id", String(headers["webhook-id"])]
    about2.push("--timestamp", String(headers["webhook-timestamp"]))
    const verify = ["verify", body, ...about2, "--signature", String(headers["webhook-signature"])]
    expect(await withSecret(...verify)).toMatchObject({
      code: 0,
      stdout: "Genuine: webhook.ping\n",
    })
    expect((await withSecret("sign", body, ...about2)).stdout).toContain(
      `webhook-signature: ${headers["webhook-signature"]}\n`,
    )
    writeFileSync(body, "{}")
    expect(await withSecret(...verify)).toMatchObject({ code: 1 })

    await expect
      .poll(async () => (await atServer("webhooks", "deliveries", ...about)).stdout)
      .toMatch(/webhook\.ping +delivered +1/)
    const connection = { TENURE_URL: server.url, TENURE_TOKEN: token }
    const onTerminal = await tenureWith(connection, 80)("webhooks", "deliveries", ...about)
    expect(onTerminal.stdout).toMatch(/^EVENT ID +TYPE +STATE +ATTEMPTS/)
    expect(Math.max(...onTerminal.stdout.split("\n").map((line) => line.length))).toBe(80)
    const delivery = ["delivery", id, String(headers["webhook-id"]), "-p", "hooks"]
    const shown = (await atServer("webhooks", ...delivery)).stdout
    expect(shown).toContain(`POST ${url}`)
    expect(shown).toMatch(/^attempt 1 .*answered 2\d\d/m)
    expect((await atServer("webhooks", "list", "-p", "hooks")).stdout).toMatch(
      / enabled +HTTP 2\d\d · \d+ s ago +http\S+ +– +0$/m,
    )
    expect((await atServer("webhooks", "replay", ...about)).code).toBe(2)
    // The ping is not sent again.
    await atServer("members", "grant", "1", "2098-01-01", "-p", "hooks")
    await expect
      .poll(async () => (await atServer("webhooks", "deliveries", ...about)).stdout)
      .toMatch(/membership\.granted +delivered +1/)
    const since = ["--since", "2001-01-01"]
    const dry = await atServer(
      "webhooks",
      "replay",
      ...about,
      ...since,
      "--only",
      "all",
      "--dry-run",
    )
    expect(dry.stdout).toBe(
      "1 event would be sent again.\nThis was a dry run: nothing was changed.\n",
    )
    const types = ["--type", "membership.extended", "--type", "membership.ended"]
    const replayed = await atServer("webhooks", "replay", ...about, ...since, ...types)
    expect(replayed.stdout).toBe("0 events are sent again.\n")
    const asked = await atServer("webhooks", "replay", ...about, ...since, "--only", "all")
    expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("Send 1 event to")])
    const all = await atServer("webhooks", "replay", ...about, ...since, "--only", "all", "--yes")
    expect(all.stdout).toBe("1 event is sent again.\n")
    const edited = join(folder, "headers")
    writeFileSync(edited, "X-Hidden: whisper\nX-Other:also: this\n")
    const edit = (...changes: ReadonlyArray<string>) =>
      atServer("webhooks", "edit", ...about, "--json", ...changes)
    const described = ["--type", "test.happened", "--description", "A shop", "--rate", "500"]
    const changes = [...described, "--header", "X-A: 1", "--header", `@${edited}`]
    expect(json((await edit(...changes)).stdout)).toMatchObject({
      event_types: ["test.happened"],
      rate: 500,
      description: "A shop",
      header_names: ["x-a", "x-hidden", "x-other"],
    })
    const back = ["--all-types", "--any-rate", "--description", "", "--remove-header", "x-a"]
    const disabled = (await edit(...back, "--disable")).stdout
    expect(json(disabled)).toMatchObject({
      event_types: null,
      rate: null,
      description: null,
      header_names: ["x-hidden", "x-other"],
      disabled_by: "request",
    })
    expect(disabled).not.toContain("whisper")
    expect((await edit()).code).toBe(2)
    expect((await edit("--rate", "1", "--any-rate")).code).toBe(2)
    expect((await edit("--header", "X-Hidden whisper")).stderr).not.toContain("whisper")
    expect(json((await edit("--enable")).stdout)).toMatchObject({ disabled_by: null })
    expect((await atServer("webhooks", "enable", ...about)).code).toBe(0)
    expect((await atServer("webhooks", "rotate", ...about)).stdout).toContain("secret")
    expect((await atServer("webhooks", "delete", ...about)).code).toBe(0)
    expect((await atServer("webhooks", "get", ...about)).code).toBe(3)
  })
})

describe("a connection", () => {
  const environment = (given: Readonly<Record<string, string>> = {}) =>
    tenureWith({ XDG_CONFIG_HOME: join(folder, "config"), ...given })

  it("is asked for", async () => {
    const { code, stderr } = await environment()("projects", "list")
    expect(code).toBe(2)
    expect(stderr).toContain("Set TENURE_URL and TENURE_TOKEN")
  })

  it("needs a token", async () => {
    const { code, stderr } = await environment({ TENURE_URL: server.url })("projects", "list")
    expect(code).toBe(2)
    expect(stderr).toContain("TENURE_TOKEN")
  })

  it("with a wrong token is refused", async () => {
    const given = { TENURE_URL: server.url, TENURE_TOKEN: "wrong" }
    const { code, stderr } = await environment(given)("projects", "list")
    expect(code).toBe(1)
    expect(stderr).toContain("UNAUTHORIZED")
  })

  it("that cannot be reached is exit code 4", async () => {
    const given = { TENURE_URL: "http://127.0.0.1:9", TENURE_TOKEN: "any" }
    expect(await environment(given)("projects", "list")).toMatchObject({ code: 4 })
    const unreachable = { TENURE_DATABASE_URL: "postgres://nobody@127.0.0.1:9/none" }
    expect(await environment(unreachable)("projects", "list")).toMatchObject({ code: 4 })
  })

  it("that is no URL is named as users know it", async () => {
    const { code, stderr } = await environment({ TENURE_URL: "127.0.0.1", TENURE_TOKEN: "any" })(
      "projects",
      "list",
    )
    expect(code).toBe(2)
    expect(stderr).toMatch(/^The URL must be an http or https URL/)
  })

  it("is one, not several", async () => {
    const given = { TENURE_URL: server.url, TENURE_DATABASE_URL: "file:./data" }
    expect(await environment(given)("projects", "list")).toMatchObject({ code: 2 })
  })

  it("has no password in an argument", async () => {
    for (const url of [
      "postgres://someone:hidden@127.0.0.1/none",
      "postgres://someone:hidden@/none?host=/cloudsql/p:r:i",
      "postgres://someone@127.0.0.1/none?password=hidden",
    ]) {
      const { code, stderr } = await environment()("projects", "list", "--database", url)
      expect(code).toBe(2)
      expect(stderr).toContain("TENURE_DATABASE_URL")
      expect(stderr).not.toContain("hidden")
    }
  })

  it.each([
    ["postgres://someone:hidden@db/none", "postgres://someone@db/none"],
    ["postgres://someone:hid@den@db/none", "postgres://someone@db/none"],
    [
      "postgres://someone:hidden@/none?host=/cloudsql/p:r:i",
      "postgres://someone@/none?host=/cloudsql/p:r:i",
    ],
    ["postgres://someone@db:5433/none?password=hidden", "postgres://someone@db:5433/none"],
    ["postgres://db/none?password=hidden&user=a", "postgres://db/none?user=a"],
    ["postgres://db:5433/none?user=a@b", "postgres://db:5433/none?user=a@b"],
  ])("shows %s without its password", (url, shown) => {
    expect(withoutPassword(url)).toBe(shown)
  })

  it("can be a profile, in a file that only its owner may read", async () => {
    const add = ["profiles", "add", "default", "--url", server.url]
    expect(await environment({ TENURE_TOKEN: token })(...add)).toMatchObject({ code: 0 })
    const file = join(folder, "config", "tenure", "profiles.json")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await environment()("projects", "list", "--profile", "default")).toMatchObject({
      code: 0,
    })
    expect(await environment()("projects", "list")).toMatchObject({ code: 0 })
    const listed = await environment()("profiles", "list", "--json")
    expect(lines(listed.stdout)).toEqual([{ name: "default", place: server.url }])
    expect(await environment()("projects", "list", "--profile", "none")).toMatchObject({ code: 2 })

    const nonsense = await environment()("profiles", "add", "x", "--url", "nonsense")
    expect(nonsense).toMatchObject({ code: 2, stderr: expect.stringMatching(/^The URL must be/) })

    chmodSync(file, 0o644)
    const refused = await environment()("projects", "list")
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain(`chmod 600 ${file}`)
    chmodSync(file, 0o600)

    writeFileSync(`${file}.kept`, readFileSync(file))
    writeFileSync(file, "{")
    const broken = await environment()("projects", "list")
    expect(broken).toMatchObject({ code: 2, stderr: expect.stringContaining("mend it, or remove") })
    rmSync(file)
    mkdirSync(file, { mode: 0o700 })
    const unreadable = await environment()("projects", "list")
    expect(unreadable).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^The file .* it is a/),
    })
    rmdirSync(file)
    renameSync(`${file}.kept`, file)
    chmodSync(file, 0o600)

    expect(await environment()("profiles", "remove", "default")).toMatchObject({ code: 0 })
    expect(await environment()("profiles", "remove", "default")).toMatchObject({ code: 3 })
    expect(json(readFileSync(file, "utf8"))).toEqual({})
  })

  it("is kept beside those that are added at the same time, and after a process was killed", async () => {
    const tenure = tenureWith({ XDG_CONFIG_HOME: join(folder, "many"), TENURE_TOKEN: token })
    const names = Array.from({ length: 10 }, (_, index) => `profile-${index}`)
    const add = (name: string) => tenure("profiles", "add", name, "--url", server.url)
    await Promise.all(names.map(add))
    const file = join(folder, "many", "tenure", "profiles.json")
    expect(Object.keys(Object(json(readFileSync(file, "utf8")))).toSorted()).toEqual(names)
    // Of a process that was killed in the middle.
    writeFileSync(`${file}.lock`, "")
    utimesSync(`${file}.lock`, 1_000_000_000, 1_000_000_000)
    expect(await tenure("profiles", "remove", "profile-0")).toMatchObject({ code: 0 })
    expect(readdirSync(join(folder, "many", "tenure"))).toEqual(["profiles.json"])
  })
})

describe("a wrong command line", () => {
  it.each([
    ["projects", "lst"],
    ["projects", "delete"],
    ["members", "list", "--state", "none"],
    ["members", "grant", "1", "2026-02-30", "-p", "p"],
    ["projects", "list", "--token", "tnr_secret"],
  ])("%s %s %s is exit code 2, and prints nothing to standard output", async (...args) => {
    const { code, stderr, stdout } = await atServer(...args)
    expect(code).toBe(2)
    expect(stdout).toBe("")
    expect(stderr).toMatch(/See tenure .*--help/)
    expect(stderr).not.toContain("tnr_secret")
  })

  it.each([
    [["members", "import", "nofile", "-p", "p"], /^The file nofile cannot be used: no such file/],
    [
      ["verify", "nofile", "--id=1", "--timestamp=1", "--signature=v1,a"],
      /^The file nofile cannot/,
    ],
    [["members", "grant", "1", "someday", "-p", "p"], /Expected: a date, such as 2027-01-31/],
    [["trigger", "a.b", "-p", "p", "--data", "{"], /Expected: JSON, such as/],
    [
      ["trigger", "a.b", "-p", "p", "--data", `{"order":9007199254740993}`],
      /Expected: JSON, .* with numbers beyond 2\^53 as text/,
    ],
  ])("%j is told in plain words", async (args, told) => {
    const { stderr } = await tenureWith({
      TENURE_URL: server.url,
      TENURE_TOKEN: token,
      TENURE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32).toString("base64")}`,
    })(...args)
    expect(stderr).toMatch(told)
    expect(stderr).not.toMatch(/FileSystem|Schema/)
  })

  it.each(["members list", "projects get", "projects export", "extend-all 2099-01-01"])(
    "names the flag and the variable for a project: %s",
    async (words) => {
      const { code, stderr } = await atServer(...words.split(" "))
      expect(code).toBe(2)
      expect(stderr).toContain("--project ID, or TENURE_PROJECT")
    },
  )

  it("is told as JSON to programs", async () => {
    const { code, stderr } = await atServer("projects", "delete", "--json")
    expect(code).toBe(2)
    expect(json(stderr)).toEqual({
      error: { message: "Missing required argument: project. See tenure projects delete --help" },
    })
  })
})

it("works in the project of a flag, or of TENURE_PROJECT", async () => {
  await atServer("projects", "create", "chosen")
  const environment = { TENURE_URL: server.url, TENURE_TOKEN: token, XDG_CONFIG_HOME: folder }
  const inChosen = tenureWith({ ...environment, TENURE_PROJECT: "chosen" })
  const flagged: typeof atServer = (...args) => atServer(...args, "--project", "chosen")
  for (const tenure of [flagged, inChosen]) {
    expect((await tenure("projects", "get")).stdout).toMatch(/^id +chosen\n/)
    const path = join(folder, "chosen.ndjson")
    expect(await tenure("projects", "export", "-o", path)).toMatchObject({ code: 0 })
    expect(readFileSync(path, "utf8")).toContain('"project_id":"chosen"')
    expect((await tenure("audit")).stdout).toBe("There are none.\n")
  }
  expect((await inChosen("projects", "delete", "--yes")).code).toBe(2)
  const outside = tenureWith({ ...environment, TENURE_PROJECT: "" })
  expect((await outside("audit")).stdout).toMatch(/ project_created +chosen /)
})
