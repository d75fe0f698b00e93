/** The page for monitoring, and the queries of the dashboard and the alerts, against the metrics that there are. */

import { readFileSync } from "node:fs"
import { parser } from "@prometheus-io/lezer-promql"
import { instruments } from "@tenure/core/Instruments"
import { nameOf } from "@tenure/core/Prometheus"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { root } from "./examples.ts"

const read = (path: string): string => readFileSync(`${root}/${path}`, "utf8")

const folder = "examples/node-server/monitoring"

interface Panel {
  readonly title: string
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
}

interface Rule {
  readonly alert: string
  readonly expr: string
}

const dashboard: { readonly panels: ReadonlyArray<Panel> } = JSON.parse(
  read(`${folder}/dashboard.json`),
)

const alerts: { readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }> } = parse(
  read(`${folder}/alerts.yaml`),
)

const queries: ReadonlyArray<readonly [name: string, query: string]> = [
  ...dashboard.panels.flatMap(({ targets = [], title }) =>
    targets.map(({ expr }): readonly [string, string] => [
      title,
      // Grafana puts values in their place.
      expr.replaceAll("$__rate_interval", "5m").replaceAll("$job", "tenure"),
    ]),
  ),
  ...alerts.groups.flatMap(({ rules }) =>
    rules.map(({ alert, expr }): readonly [string, string] => [alert, expr]),
  ),
]

/** The names that a metric has in Prometheus. */
const namesOf = (name: string, type: string): ReadonlyArray<string> => {
  const whole = nameOf(name)
  return type === "histogram" ? [`${whole}_bucket`, `${whole}_count`, `${whole}_sum`] : [whole]
}

const labelOf = (attribute: string): string => attribute.replaceAll(/\W/g, "_")

// `up` and the labels of a target are Prometheus' own.
const metrics = new Set(["up"])
const labels = new Set(["job", "instance", "le"])
for (const [name, { attributes, type }] of Object.entries(instruments)) {
  for (const one of namesOf(name, type)) metrics.add(one)
  for (const attribute of attributes) labels.add(labelOf(attribute))
}

/** The texts of all nodes of some types in a query, which must be valid. */
const partsOf = (query: string, ...types: ReadonlyArray<string>): ReadonlyArray<string> => {
  const found: Array<string> = []
  parser.parse(query).iterate({
    enter: ({ from, name, to, type }) => {
      if (type.isError) throw new Error(`invalid at ${from}: ${query}`)
      if (types.includes(name)) found.push(query.slice(from, to))
    },
  })
  return found
}

describe("the dashboard and the alerts", () => {
  it.each(queries)("%s", (_name, query) => {
    const seen = partsOf(query, "Identifier")
    expect(seen.length).toBeGreaterThan(0)
    for (const name of seen) expect(metrics).toContain(name)
    for (const label of partsOf(query, "LabelName")) expect(labels).toContain(label)
  })

  it("show every metric", () => {
    const seen = new Set(queries.flatMap(([, query]) => partsOf(query, "Identifier")))
    for (const [name, { type }] of Object.entries(instruments)) {
      expect(
        namesOf(name, type).some((one) => seen.has(one)),
        name,
      ).toBe(true)
    }
  })
})

it("the page lists all metrics", () => {
  const page = read("docs/monitoring.md")
  const rows = [...page.matchAll(/^\| `([\w.]+)` +\| (\w+) +\| (\S+) +\| (.*?) +\| (.*?) +\|$/gm)]
  expect(rows.map(([, ...cells]) => cells)).toEqual(
    Object.entries(instruments).map(([name, { attributes, description, type, unit }]) => [
      name,
      type,
      unit,
      attributes.map((attribute) => `\`${attribute}\``).join(", "),
      description,
    ]),
  )
})
