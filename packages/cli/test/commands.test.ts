/** The commands at a server, and some on a database and as processes. */

import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { createTenure } from "@tenure/core"
import { postgres } from "@tenure/postgres"
import { startReceiver } from "@tenure/testing/conformance"
import { beforeAll, describe, expect, inject, it, onTestFinished } from "vitest"
import { testCommands } from "./commands.ts"
import { refused, tenureWith } from "./in-process.ts"
import { command, commandFromSource, run as runProcess } from "./programs.ts"
import { startProxy, token, useServer } from "./server.ts"

const server = useServer()
const { json, lines, print, run } = server

const database = { TENURE_DATABASE_URL: inject("databaseUrl"), TENURE_SCHEMA: "cli" }
const onDatabase = tenureWith({ ...database, XDG_CONFIG_HOME: server.folder })

beforeAll(async () => {
  const stores = postgres({ url: database.TENURE_DATABASE_URL, schema: database.TENURE_SCHEMA })
  await (await createTenure({ stores })).close()
})

const receive = async (answer?: Parameters<typeof startReceiver>[0]) => {
  const receiver = await startReceiver(answer)
  onTestFinished(receiver.close)
  return receiver
}

describe("at a server", () => {
  testCommands(server)
})

it("works on a database as at a server", async () => {
  const project = `direct-${crypto.randomUUID()}`
  expect(await onDatabase.print`projects create ${project}`).toBe(
    `Created the project ${project}.\n`,
  )
  await onDatabase.print`members grant 1 2098-01-01 -p ${project} --reason "a test"`
  const dry = await onDatabase.json`extend-all ${project} --by P1D --dry-run`
  expect(dry).toMatchObject({ total: 1 })
  expect(await onDatabase.lines`audit ${project}`).toMatchObject([
    { action: "granted", user_id: "1", reason: "a test" },
  ])
  expect(await onDatabase.run`members get 2 -p ${project}`).toMatchObject({ code: 3 })
})

it.each([
  { from: "bundled", program: command() },
  { from: "from source", program: commandFromSource() },
])("as a process, $from, the command prints, and ends with its exit code", async ({ program }) => {
  const env = server.environment()
  const ended = await runProcess([...program, "projects", "get", "none", "--json"], { env })
  expect(ended).toMatchObject({ ...refused(3, "PROJECT_NOT_FOUND"), stdout: "" })
})

describe("trigger", () => {
  const none = "There are none.\n"

  it("leaves no member when it is interrupted", async () => {
    const project = `interrupted-${crypto.randomUUID()}`
    await onDatabase.print`projects create ${project}`
    const listed = () => onDatabase.print`members list -p ${project}`
    // No server announces anything here, so it waits.
    const running = onDatabase.start`trigger membership.expired -p ${project}`
    await expect.poll(listed).not.toBe(none)
    await running.interrupt()
    expect(await listed()).toBe(none)
  })

  it("leaves no member when what it does fails", async () => {
    await print`projects create failing`
    const proxy = await startProxy(server.url(), ({ method }, response) => {
      if (method !== "PATCH") return "passed"
      response.writeHead(403).end()
      return "kept"
    })
    const failing = tenureWith({ TENURE_URL: proxy, TENURE_TOKEN: token })
    const ended = await failing.run`trigger membership.extended -p failing`
    expect(ended).toMatchObject(refused(1, "403"))
    expect(await print`members list -p failing`).toBe(none)
  })

  it("leaves those who are members otherwise", async () => {
    await print`projects create kept`
    await print`trigger membership.granted -p kept`
    await print`members grant 0 2099-01-01 -p kept`
    expect(await run`trigger membership.granted -p kept`).toMatchObject({
      code: 1,
      stderr: "0 is already a member. Pass a --user that is not.\n",
    })
    expect(await print`members list -p kept`).toContain("2099")
  })

  it("disables a webhook, and leaves none", async () => {
    await print`projects create disabling`
    const { received, until, url } = await receive()
    await print`webhooks create ${url} -p disabling --type webhook.disabled`
    await print`trigger webhook.disabled -p disabling`
    await until(1)
    expect(received[0]?.body).toContain("webhook.disabled")
    const listed = await lines`webhooks list -p disabling`
    expect(listed).toEqual([expect.objectContaining({ url, disabled_at: null })])
  })

  it("lets memberships be overdue, and expire, in a project with grace", async () => {
    const p = ["-p", "lenient"]
    await print`projects create lenient`
    const graceless = await run`trigger membership.overdue ${p}`
    expect(graceless).toMatchObject(refused(1, "lenient has no grace"))
    await print`projects update lenient --grace P7D`
    for (const type of ["overdue", "expired"]) {
      await print`trigger membership.${type} ${p}`
      expect(await print`members list ${p}`).toBe(none)
    }
    const history = await lines`members history 0 ${p}`
    expect(
      history.filter(({ action }) => action !== "granted" && action !== "ended"),
    ).toMatchObject([{ action: "expired" }, { action: "overdue" }])
  })

  it.each(["expiring", "expired"])(
    "waits for membership.%s, and leaves no member",
    async (type) => {
      await print`projects create ends`
      await print`trigger membership.${type} -p ends`
      expect(await print`members list -p ends`).toBe(none)
      expect(await print`members history 0 -p ends`).toContain(type)
    },
  )
})

describe("webhooks", () => {
  const create = async (project: string, url: string) => {
    await print`projects create ${project}`
    const { id, secret } = await json`webhooks create ${url} -p ${project}`
    return { about: [String(id), "-p", project], id: String(id), secret: String(secret) }
  }

  it("are listed without their secret, which signs and verifies what they send", async () => {
    const { received, until, url } = await receive()
    const { about, id, secret } = await create("signed", url)
    await print`webhooks ping ${about}`
    await until(1)
    const { body: sent = "", headers = {} } = received[0] ?? {}

    for (const words of [
      ["list", "-p", "signed"],
      ["get", ...about],
    ]) {
      const all = [await print`webhooks ${words}`, await print`webhooks ${words} --json`]
      for (const text of all) {
        expect(text).toContain(id)
        expect(text).not.toContain(secret)
      }
    }
    expect(await print`webhooks get ${about} --show-secret`).toContain(secret)

    const body = join(server.folder, "body.json")
    writeFileSync(body, sent)
    const withSecret = tenureWith({ TENURE_WEBHOOK_SECRET: secret })
    const field = (name: string) => String(headers[`webhook-${name}`])
    const signature = field("signature")
    const message = [body, "--id", field("id"), "--timestamp", field("timestamp")]
    const verify = ["verify", ...message, "--signature", signature]
    expect(await withSecret.print`${verify}`).toBe("Genuine: webhook.ping\n")
    expect(await withSecret.print`sign ${message}`).toContain(`webhook-signature: ${signature}\n`)
    writeFileSync(body, "{}")
    expect(await withSecret.run`${verify}`).toMatchObject({ code: 1 })
  })

  it("have deliveries, which are shown and sent again", async () => {
    const { received, url } = await receive()
    const { about, id } = await create("delivered", url)
    const delivered = (type: RegExp) =>
      expect.poll(() => print`webhooks deliveries ${about}`).toMatch(type)
    await print`webhooks ping ${about}`
    await delivered(/webhook\.ping +delivered +1/)
    const onTerminal = tenureWith(server.environment(), 80)
    const table = await onTerminal.print`webhooks deliveries ${about}`
    expect(table).toMatch(/^EVENT ID +TYPE +STATE +ATTEMPTS/)
    expect(Math.max(...table.split("\n").map((line) => line.length))).toBe(80)
    const event = String(received[0]?.headers["webhook-id"])
    const shown = await print`webhooks delivery ${id} ${event} -p delivered`
    expect(shown).toContain(`POST ${url}`)
    expect(shown).toMatch(/^attempt 1 .*answered 2\d\d/m)
    expect(await print`webhooks list -p delivered`).toMatch(
      / enabled +HTTP 2\d\d · \d+ s ago +http\S+ +– +0$/m,
    )

    // The ping is not sent again.
    await print`members grant 1 2098-01-01 -p delivered`
    await delivered(/membership\.granted +delivered +1/)
    expect(await run`webhooks replay ${about}`).toMatchObject({ code: 2 })
    const replay = ["webhooks", "replay", ...about, "--since", "2001-01-01"]
    expect(await print`${replay} --only all --dry-run`).toBe(
      "1 event would be sent again.\nThis was a dry run: nothing was changed.\n",
    )
    expect(await print`${replay} --type membership.extended --type membership.ended`).toBe(
      "0 events are sent again.\n",
    )
    expect(await run`${replay} --only all`).toMatchObject(refused(2, "Send 1 event to"))
    expect(await print`${replay} --only all --yes`).toBe("1 event is sent again.\n")
    const cancel = ["webhooks", "cancel", ...about, "--type", "membership.extended"]
    expect(await print`${cancel} --dry-run`).toMatch(/^\d waiting events? would not be sent\.\n/)
    expect(await print`${cancel} --since 2001-01-01 --until 2001-01-02 --yes`).toBe(
      "0 events are not sent any more.\n",
    )
  })

  it("are edited, rotated and deleted", async () => {
    const { about } = await create("edited", "https://receiver.example/")
    const headers = join(server.folder, "headers")
    writeFileSync(headers, "X-Hidden: whisper\nX-Other:also: this\n")
    const described = ["--type", "test.happened", "--description", "A shop", "--rate", "500"]
    const fields = ["--header", "X-A: 1", "--header", `@${headers}`]
    expect(await json`webhooks edit ${about} ${described} ${fields}`).toMatchObject({
      event_types: ["test.happened"],
      rate: 500,
      description: "A shop",
      header_names: ["x-a", "x-hidden", "x-other"],
    })
    const back = ["--all-types", "--any-rate", "--description", "", "--remove-header", "x-a"]
    const disabled = await print`webhooks edit ${about} ${back} --disable --json`
    expect(JSON.parse(disabled)).toMatchObject({
      event_types: null,
      rate: null,
      description: null,
      header_names: ["x-hidden", "x-other"],
      disabled_by: "request",
    })
    expect(disabled).not.toContain("whisper")
    expect(await run`webhooks edit ${about}`).toMatchObject({ code: 2 })
    expect(await run`webhooks edit ${about} --rate 1 --any-rate`).toMatchObject({ code: 2 })
    const wrong = await run`webhooks edit ${about} --header "X-Hidden whisper"`
    expect(wrong.stderr).not.toContain("whisper")
    expect(await json`webhooks edit ${about} --enable`).toMatchObject({ disabled_by: null })
    await print`webhooks enable ${about}`
    expect(await print`webhooks rotate ${about}`).toContain("secret")
    await print`webhooks delete ${about}`
    expect(await run`webhooks get ${about}`).toMatchObject({ code: 3 })
  })
})
