/** The charts: one for each question. */

import type { Findings } from "../measurement.ts"
import { unansweredOf } from "./alternatives.ts"
import { type Group, casesOf, groupOf, growthOf } from "./bars.ts"

/** A chart, to be drawn. */
export interface Chart {
  /** The name of its files. */
  readonly name: string
  readonly title: string
  /** What the length of a bar means, on one line. */
  readonly subtitle: string
  readonly groups: ReadonlyArray<Group>
}

/** All that was measured. */
type Found = Required<Findings>

const http = ({ rows }: Found): Chart => {
  const group = (title: string, measured: string, as: string) =>
    groupOf(title, rows, [{ measured, unit: "µs CPU", as }])
  const mounted = (host: string) =>
    group(`Mounted in ${host}`, `extension over HTTP, mounted in ${host}`, `Tenure in ${host}`)
  const measured = "extension over HTTP, in memory"
  return {
    name: "http",
    title: "How many requests does one processor answer?",
    subtitle: "Extensions for each second of the server’s processor time, in memory",
    groups: [
      groupOf("By itself", rows, [
        { measured, unit: "µs CPU", as: "Tenure" },
        { measured: `${measured}, access log on`, unit: "µs CPU", as: "Tenure, access log on" },
      ]),
      mounted("Express"),
      mounted("Fastify"),
      mounted("fetch"),
    ],
  }
}

const onServer = /^take on ((?:PostgreSQL|Redis), .*): Tenure's RateLimitStore$/

const limits = ({ rows }: Found): Chart => {
  const group = (title: string, measured: string) =>
    groupOf(title, rows, [{ measured, unit: "/s", as: "Tenure" }])
  const inMemory = (outcome: string) =>
    group(
      `In memory, 100,000 clients, ${outcome}`,
      `take of three buckets, uniform, ${outcome}: Tenure's RateLimitStore`,
    )
  const takes = new Set(rows.map(({ measured }) => measured))
  return {
    name: "limits",
    title: "How many requests can be limited?",
    subtitle: "Takes a second, each from the buckets of the key, its burst and the address",
    groups: [
      inMemory("admitted"),
      inMemory("refused"),
      ...[...takes].flatMap((measured) => {
        const [, clients] = onServer.exec(measured) ?? []
        return clients === undefined ? [] : [group(`On ${clients}`, measured)]
      }),
    ],
  }
}

const postgres = ({ rows }: Found): Chart => ({
  name: "postgres",
  title: "How many changes can PostgreSQL take?",
  subtitle: "Changes a second, each with its audit row",
  groups: [
    groupOf("Extensions, 64 in flight", rows, [
      { measured: "extension: membership, audit row, event", unit: "/s", as: "Tenure" },
    ]),
    groupOf("Extensions over HTTP, two statements each", rows, [
      {
        measured: "extension over HTTP, on PostgreSQL, from 2,000 keys",
        unit: "/s",
        as: "Tenure, from 2,000 keys",
      },
    ]),
    casesOf("New memberships", rows, [
      {
        measured: "grant: membership, audit row, event; 256 in flight",
        unit: "/s",
        as: "Tenure, one in each call",
      },
      {
        measured: "import: memberships with their audit rows",
        unit: "/s",
        as: "Tenure, 10,000 in each call",
      },
    ]),
  ],
})

const delivered = (as: string, measured: string) => ({ as, measured, unit: "/s" })

const deliveries = ({ rows }: Found): Chart => {
  return {
    name: "deliveries",
    title: "How many notifications can be delivered?",
    subtitle: "Deliveries a second, each verified by the receiver in another process",
    groups: [
      casesOf("By one process, or by three", rows, [
        delivered("one webhook", "deliveries to one webhook"),
        delivered("one webhook that takes 25 ms", "deliveries to one webhook that takes 25 ms"),
        delivered("20 webhooks", "deliveries to 20 webhooks"),
        delivered("20 webhooks, three processes", "deliveries to 20 webhooks, by three processes"),
        delivered("20 that take 25 ms", "deliveries to 20 webhooks that take 25 ms"),
        delivered(
          "20 that take 25 ms, three processes",
          "deliveries to 20 webhooks that take 25 ms, by three processes",
        ),
        delivered("20 webhooks, a long backlog", "deliveries of a backlog"),
        delivered("20 webhooks, while publishing", "deliveries, sustained"),
      ]),
    ],
  }
}

const growth = ({ curves }: Found): Chart => {
  const places = ["in memory", "on PostgreSQL"]
  const extensions = (by: string) =>
    places.map((place) =>
      growthOf(`Extensions ${place}, by ${by}`, curves, `extension ${place} by ${by}`),
    )
  return {
    name: "growth",
    title: "Does it get slower as things grow?",
    subtitle: "Operations a second; bars of the same length mean that size costs nothing",
    groups: [
      ...extensions("memberships"),
      ...extensions("projects"),
      ...places.map((place) =>
        growthOf(
          `Deliveries queued ${place}, by webhooks`,
          curves,
          `publication ${place} by webhooks, a delivery`,
        ),
      ),
    ],
  }
}

const questions = [http, limits, postgres, deliveries, growth]

const isMeasured = ({ bars }: Group): boolean => bars.length > 0

/** What belongs into charts but was not measured. After a run of everything, there is nothing. */
export const gapsOf = (found: Found): ReadonlyArray<string> => [
  ...unansweredOf(found.rows),
  ...questions.flatMap((chart) => chart(found).groups).flatMap(({ missing }) => missing),
]

/** All charts of what was measured. */
export const chartsOf = (found: Found): ReadonlyArray<Chart> =>
  questions
    .map((chart) => chart(found))
    .map((chart) => ({ ...chart, groups: chart.groups.filter(isMeasured) }))
    .filter(({ groups }) => groups.length > 0)
