/** The monitoring page, and the queries in the dashboard and the alerts, against the metrics that there are. */

import { parser } from "@prometheus-io/lezer-promql"
import { instruments, prometheusName } from "@tenure/core/internal"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { read } from "./examples.ts"

const folder = "examples/node-server/monitoring"

interface Panel {
  readonly title: string
  readonly targets?: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
}

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}

const dashboard: { readonly panels: ReadonlyArray<Panel> } = JSON.parse(
  read(`${folder}/dashboard.json`),
)

const alerts: { readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }> } = parse(
  read(`${folder}/alerts.yaml`),
)

/** A query, with the text that shows each series. */
interface Query {
  readonly name: string
  readonly expr: string
  readonly text: string
}

const curves: ReadonlyArray<Query> = dashboard.panels.flatMap(({ targets = [], title }) =>
  targets.map(({ expr, legendFormat }) => ({
    name: title,
    // Grafana puts values in their place.
    expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$job", "tenure"),
    text: legendFormat,
  })),
)

const rules: ReadonlyArray<Query> = alerts.groups.flatMap((group) =>
  group.rules.map(({ alert, annotations, expr }) => ({
    name: alert,
    expr,
    text: annotations.summary,
  })),
)

const queries = [...curves, ...rules]

/** The names that a metric has in Prometheus. */
const namesOf = (name: string, type: string): ReadonlyArray<string> => {
  const whole = prometheusName(name)
  return type === "histogram" ? [`${whole}_bucket`, `${whole}_count`, `${whole}_sum`] : [whole]
}

const labelOf = (attribute: string): string => attribute.replaceAll(/\W/g, "_")

// `up` and a target's labels are Prometheus' own.
const ofTarget = ["job", "instance", "le"]

/** Each metric's labels. */
const labelsByMetric = new Map<string, ReadonlyArray<string>>([["up", ofTarget]])
for (const [name, { attributes, type }] of Object.entries(instruments)) {
  for (const one of namesOf(name, type)) {
    labelsByMetric.set(one, [...ofTarget, ...attributes.map(labelOf)])
  }
}

// Databases' names, which are there if there are several.
const databaseLabels = ["tenure_database_name", "db_client_connection_pool_name"]

/** All nodes' texts of some types in a query, which must be valid. */
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

const metricsIn = (expr: string): ReadonlyArray<string> => partsOf(expr, "Identifier")

/** The labels that a query's metrics have. */
const labelsIn = (expr: string): ReadonlyArray<string> =>
  metricsIn(expr).flatMap((metric) => labelsByMetric.get(metric) ?? [])

/** The labels on the series that a query returns. */
const labelsOf = (expr: string): ReadonlyArray<string> => {
  if (partsOf(expr, "AggregateExpr").length === 0) return labelsIn(expr)
  return partsOf(expr, "GroupingLabels").flatMap((by) => by.match(/\w+/g) ?? [])
}

/** The labels that a legend (`{{label}}`) or a summary (`$labels.label`) shows. */
const shownIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\{\{(\w+)\}\}|\$labels\.(\w+)/g)].flatMap(
    ([, one, other]) => one ?? other ?? [],
  )

describe("the dashboard and the alerts", () => {
  it.each(queries)("$name", ({ expr, text }) => {
    const seen = metricsIn(expr)
    expect(seen.length).toBeGreaterThan(0)
    for (const metric of seen) expect([...labelsByMetric.keys()]).toContain(metric)
    for (const label of partsOf(expr, "LabelName")) expect(labelsIn(expr)).toContain(label)
    for (const label of shownIn(text)) expect(labelsOf(expr)).toContain(label)
  })

  it.each(queries)("$name tells databases apart, if its metrics do", ({ expr, text }) => {
    for (const label of databaseLabels.filter((one) => labelsIn(expr).includes(one))) {
      expect(labelsOf(expr)).toContain(label)
      expect(shownIn(text)).toContain(label)
    }
  })

  it.each(curves)("$name has a legend, also with one database", ({ text }) => {
    const withoutNames = databaseLabels.reduce((left, one) => left.replace(`{{${one}}}`, ""), text)
    expect(withoutNames).toMatch(/^\S/)
  })

  it("show every metric", () => {
    const seen = new Set(queries.flatMap(({ expr }) => metricsIn(expr)))
    for (const [name, { type }] of Object.entries(instruments)) {
      expect(
        namesOf(name, type).some((one) => seen.has(one)),
        name,
      ).toBe(true)
    }
  })
})

it("the page of telemetry lists all metrics", () => {
  const page = read("docs/internals/telemetry.md")
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

describe("each alert links to its entry on the page:", () => {
  const page = "docs/watch.md"
  const entries = [...read(page).matchAll(/^### (Tenure\w+)\n\n(\S.*)$/gm)]
  const { homepage } = JSON.parse(read("package.json"))
  const site = `${String(homepage).replace("#readme", "")}/blob/main/${page}`

  it.each(alerts.groups.flatMap((group) => group.rules))("$alert", ({ alert, annotations }) => {
    expect(entries.map(([, name]) => name)).toContain(alert)
    expect(annotations.runbook_url).toBe(`${site}#${alert.toLowerCase()}`)
  })

  it("the page has no other entries", () => {
    expect(entries.map(([, name]) => name)).toEqual(rules.map(({ name }) => name))
  })
})
