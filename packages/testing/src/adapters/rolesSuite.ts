/** Who may do what: every operation, for every role, in own, foreign and missing projects. */

import * as Role from "@tenure/core/Role"
import * as Route from "@tenure/core/Route"
import * as Struct from "effect/Struct"
import { describe, expect, it } from "vitest"
import { fieldsOf } from "../support/envelope.ts"
import type { Incoming } from "../support/httpClient.ts"
import type { Fixture, Serving } from "./AdapterHarness.ts"

/** What is expected of an operation. */
interface Expectation {
  /** The least role that may call it; `"none"` if no key is needed. */
  readonly least: Role.Role | "none"
  /** Whether the key must open all projects. */
  readonly needsAll?: boolean
  /** The body of a request, for operations that need one. */
  readonly body?: object
  /** The content type of the body, if it is not JSON. */
  readonly type?: string
  /** How those who may call it are answered: `"OK"` (default), or the code of an error. */
  readonly answer?: string
  /**
   * How those who may use all projects are answered if the project does not exist; by default, with
   * the code of a project that was not found.
   */
  readonly missing?: string
}

const extend = "2099-01-01T00:00:00.000Z"

const unknownWebhook = { answer: "WEBHOOK_NOT_FOUND" } as const

/** The expectation of each operation. One that is missing does not compile. */
const expectations: { readonly [Of in Route.Operation]: Expectation } = {
  "memberships.extend": { least: "client", body: { extend } },
  "memberships.extendAll": { least: "client", body: { extend } },
  "memberships.import": {
    least: "operator",
    body: { user_id: "1001", end_date: extend },
    type: "application/x-ndjson",
  },
  "memberships.grant": { least: "operator", body: { end_date: extend } },
  "memberships.end": { least: "operator" },
  "memberships.list": { least: "client" },
  "memberships.get": { least: "client" },
  "memberships.history": { least: "operator" },
  "projects.list": { least: "client" },
  "projects.create": { least: "admin", missing: "OK" },
  "projects.get": { least: "client" },
  "projects.delete": { least: "admin" },
  "projects.audit": { least: "operator" },
  "webhooks.list": { least: "client" },
  "webhooks.create": { least: "client", body: { url: "https://receiver.example/" } },
  "webhooks.delete": { least: "client", ...unknownWebhook },
  "webhooks.health": { least: "client" },
  "webhooks.get": { least: "client", ...unknownWebhook },
  "webhooks.ping": { least: "operator", ...unknownWebhook },
  "webhooks.enable": { least: "operator", ...unknownWebhook },
  "webhooks.rotate": { least: "operator", ...unknownWebhook },
  "webhooks.deliveries": { least: "operator", ...unknownWebhook },
  "webhooks.delivery": { least: "operator", ...unknownWebhook },
  "webhooks.replay": {
    least: "operator",
    body: { since: extend },
    ...unknownWebhook,
  },
  "events.list": { least: "client" },
  "events.publish": { least: "operator", body: { type: "payment.completed", data: {} } },
  "events.get": { least: "operator", answer: "EVENT_NOT_FOUND" },
  "realtime.issueTicket": { least: "client", body: { projects: ["p2"] } },
  "apiKeys.list": { least: "admin" },
  "apiKeys.issue": { least: "admin", body: { projects: ["p2"], role: "client" } },
  "apiKeys.revoke": { least: "admin", answer: "API_KEY_NOT_FOUND" },
  "audit.list": { least: "admin", needsAll: true },
  "identity.get": { least: "client" },
  "status.activity": { least: "admin", needsAll: true },
  "status.get": { least: "admin", needsAll: true },
  "docs.document": { least: "none" },
  "docs.asyncDocument": { least: "none" },
  "docs.page": { least: "none" },
}

/** Somebody who sends requests, and the project that they may use. */
interface Sender {
  readonly name: string
  readonly role: Role.Role
  readonly projects: "all" | ReadonlyArray<string>
}

const senders: ReadonlyArray<Sender> = [
  ...Role.roles.map((role) => ({ name: `${role} of p2`, role, projects: ["p2"] })),
  ...Role.roles.map((role) => ({
    name: `${role} of all projects`,
    role,
    projects: "all" as const,
  })),
]

const projects = ["p1", "p2", "p9"]

const unknownId = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

/** Returns the path of an operation: for a member of the project, and otherwise for unknown things. */
const pathOf = (operation: Route.Operation, project: string): string =>
  Route.table[operation].pattern
    .replace(":project_id", project)
    .replace(":user_id", "1001")
    .replace(/:\w+/, unknownId)

const codeOf = ({ body, status }: Incoming): unknown =>
  status === 200 ? "OK" : fieldsOf(fieldsOf(body)["error"])["error_code"]

/** Returns how a request in a project is answered; p9 does not exist. */
const expectedOf = (operation: Route.Operation, sender: Sender, project: string): string => {
  const { answer = "OK", least, missing = "PROJECT_NOT_FOUND", needsAll } = expectations[operation]
  if (needsAll === true && sender.projects !== "all") return "FORBIDDEN"
  if (least !== "none" && !Role.covers(sender.role, least)) return "FORBIDDEN"
  if (!Route.table[operation].pattern.includes(":project_id")) return answer
  if (sender.projects === "all") return project === "p9" ? missing : answer
  return sender.projects.includes(project) ? answer : "PROJECT_NOT_FOUND"
}

/** Makes the member of both projects whom an operation may have removed. */
const restore = async ({ tenure: { memberships } }: Fixture): Promise<void> => {
  for (const projectId of ["p1", "p2"]) {
    await memberships.createProject(projectId)
    await memberships.grant({ projectId, userId: "1001", endDate: extend })
  }
}

const answersTo = async (fixture: Fixture, operation: Route.Operation, sender: Sender) => {
  const { body, type } = expectations[operation]
  const { method } = Route.table[operation]
  const headers = type === undefined ? {} : { "content-type": type }
  const answers: Record<string, unknown> = {}
  for (const project of projects) {
    await restore(fixture)
    const { token } = await fixture.tenure.apiKeys.issue(sender)
    answers[project] = codeOf(
      await fixture.call(method, pathOf(operation, project), { token, body, headers }),
    )
  }
  return answers
}

const erasureTest = (serving: Serving): void => {
  it(
    "admin is needed to erase a person",
    serving(async (fixture) => {
      for (const sender of senders) {
        await restore(fixture)
        const { token } = await fixture.tenure.apiKeys.issue(sender)
        for (const [erase, least] of [
          ["true", "admin"],
          ["false", "operator"],
        ] as const) {
          const path = `${pathOf("memberships.end", "p2")}?erase=${erase}`
          const code = codeOf(await fixture.call("DELETE", path, { token }))
          const isForbidden = !Role.covers(sender.role, least)
          expect([sender.name, erase, code === "FORBIDDEN"]).toEqual([
            sender.name,
            erase,
            isForbidden,
          ])
        }
      }
    }),
  )
}

/** Declares the tests. */
export const rolesSuite = (serving: Serving): void => {
  describe("a role", () => {
    erasureTest(serving)
    for (const operation of Struct.keys(expectations)) {
      it(
        `${expectations[operation].least} is enough for ${operation}, in projects that the key opens`,
        serving(async (fixture) => {
          for (const sender of senders) {
            const expected = projects.map((project) => [
              project,
              expectedOf(operation, sender, project),
            ])
            const answers = await answersTo(fixture, operation, sender)
            expect([sender.name, answers]).toEqual([sender.name, Object.fromEntries(expected)])
          }
          const { method } = Route.table[operation]
          const headers = { authorization: "" }
          const stranger = await fixture.call(method, pathOf(operation, "p1"), { headers })
          expect(codeOf(stranger)).toBe(
            expectations[operation].least === "none" ? "OK" : "UNAUTHORIZED",
          )
        }),
      )
    }
  })
}
