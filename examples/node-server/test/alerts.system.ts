/** Prometheus fires every alert when it has to, and no earlier. */

import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { instruments, prometheusName } from "@tenure/core/internal"
import { send } from "@tenure/testing/conformance"
import { afterEach, describe, expect, it, onTestFinished } from "vitest"
import { parse, stringify } from "yaml"
import { endAll, startServer } from "../../../packages/server/test/programs.ts"
import { temporaryFolder } from "../../../packages/server/test/world.ts"
import { missing, promtool, startPrometheus } from "./prometheus.ts"

const pathOf = (file: string): string =>
  fileURLToPath(new URL(`../monitoring/${file}`, import.meta.url))

const alerts = await readFile(pathOf("alerts.yaml"), "utf8")

interface Rule {
  readonly alert: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const rules: ReadonlyArray<Rule> = parse(alerts).groups[0].rules

/** Series that make an alert fire. */
interface Case {
  readonly alert: string
  /** The job's series, with a value for each minute, in promtool's notation. */
  readonly series: Readonly<Record<string, string>>
  /** Minutes at which it is silent. */
  readonly silent: ReadonlyArray<number>
  /** The minute at which it fires. */
  readonly fires: number
  /** Its labels, beside those in the rule. */
  readonly labels?: Readonly<Record<string, string>>
  /** Its summary, if this depends on the labels. */
  readonly summary?: string
}

const requests = "http_server_request_duration_seconds"
const attempts = "tenure_webhook_attempt_duration_seconds_count"
const pool = { instance: "a", db_client_connection_pool_name: "eu" }

const cases: ReadonlyArray<Case> = [
  {
    alert: "TenureDown",
    series: { 'up{instance="a"}': "1 0x5" },
    silent: [0, 1],
    fires: 2,
    labels: { job: "tenure", instance: "a" },
    summary: "The server a does not answer.",
  },
  {
    alert: "TenureStoreDown",
    series: {
      'tenure_store_up{instance="a", tenure_store_name="audit"}': "1x5",
      'tenure_store_up{instance="b", tenure_store_name="audit"}': "1 0x5",
    },
    silent: [0, 1],
    fires: 2,
    labels: { tenure_store_name: "audit" },
    summary: "The store of audit does not answer, or takes no changes.",
  },
  {
    alert: "TenureStoreDown",
    series: { 'tenure_store_up{tenure_store_name="audit", tenure_database_name="eu"}': "0x5" },
    silent: [0],
    fires: 1,
    labels: { tenure_store_name: "audit", tenure_database_name: "eu" },
    summary: "The store of audit in the database eu does not answer, or takes no changes.",
  },
  {
    alert: "TenureErrors",
    series: {
      [`${requests}_count{http_response_status_code="200"}`]: "0+98x20",
      [`${requests}_count{http_response_status_code="503"}`]: "0+2x20",
    },
    silent: [5],
    fires: 6,
  },
  {
    alert: "TenureSlow",
    series: {
      [`${requests}_bucket{http_route="/v2", le="1"}`]: "0+98x20",
      [`${requests}_bucket{http_route="/v2", le="10"}`]: "0+100x20",
      [`${requests}_bucket{http_route="/v2", le="+Inf"}`]: "0+100x20",
    },
    silent: [5],
    fires: 6,
  },
  {
    alert: "TenureDeliveriesLate",
    series: {
      'tenure_webhook_deliveries_late_seconds{tenure_database_name="eu"}': "600 601x10",
    },
    silent: [0, 5],
    fires: 6,
    labels: { tenure_database_name: "eu" },
    summary:
      "A delivery in the database eu has waited more than ten minutes for a server to send it.",
  },
  {
    alert: "TenureEncryptionKeyMissing",
    series: { 'tenure_encryption_key_missing{tenure_encryption_key_id="k1"}': "0 1x5" },
    silent: [0],
    fires: 1,
    labels: { tenure_encryption_key_id: "k1" },
    summary:
      "Nothing is sent to webhooks whose secrets need the encryption key k1, which is missing or another one. See TENURE_ENCRYPTION_KEY.",
  },
  {
    // After the first such attempt, with which the series begins.
    alert: "TenureSecretsUnreadable",
    series: { [`${attempts}{error_type="SecretUnreadable"}`]: "_ _ 1x20" },
    silent: [1, 8],
    fires: 2,
  },
  {
    // After one more.
    alert: "TenureSecretsUnreadable",
    series: { [`${attempts}{error_type="SecretUnreadable"}`]: "1x10 2x20" },
    silent: [10, 17],
    fires: 11,
  },
  {
    alert: "TenureAttemptsFail",
    series: {
      [`${attempts}{tenure_webhook_outcome="delivered"}`]: "0+4x30",
      [`${attempts}{tenure_webhook_outcome="failed"}`]: "0+5x30",
    },
    silent: [15],
    fires: 16,
  },
  {
    alert: "TenureWebhookDisabled",
    series: { 'tenure_webhook_disabled{tenure_database_name="eu"}': "1x10 2x100" },
    silent: [10, 75],
    fires: 11,
    labels: { tenure_database_name: "eu" },
    summary:
      "A webhook in the database eu was disabled in the last hour, because its receiver is gone or has failed for days.",
  },
  {
    alert: "TenureRateLimitsWithoutStore",
    series: { tenure_rate_limit_without_store: "1x10" },
    silent: [0],
    fires: 1,
  },
  {
    alert: "TenureKeysSuspended",
    series: { tenure_rate_limit_suspended_keys: "1x20" },
    silent: [9],
    fires: 10,
  },
  {
    alert: "TenureStatementsWait",
    series: {
      'db_client_connection_pending_requests{instance="a", db_client_connection_pool_name="eu"}':
        "0 3x10",
    },
    silent: [4],
    fires: 6,
    labels: { job: "tenure", ...pool },
    summary: "Statements of a wait for a connection to eu all the time.",
  },
  {
    alert: "TenureEventLoopLate",
    series: { 'nodejs_eventloop_delay_p99_seconds{instance="a"}': "0.3x10" },
    silent: [4],
    fires: 5,
    labels: { job: "tenure", instance: "a" },
    summary: "The event loop of a is late by more than 200 ms.",
  },
]

/** Metrics without a problem in clients, receivers or the database. */
const healthy = {
  'up{instance="a"}': "1x120",
  'tenure_store_up{tenure_store_name="audit"}': "1x120",
  [`${requests}_count{http_response_status_code="200"}`]: "0+1000x120",
  [`${requests}_count{http_response_status_code="429"}`]: "0+1000x120",
  [`${requests}_count{http_response_status_code="500"}`]: "0+19x120",
  [`${requests}_bucket{http_route="/v2", le="1"}`]: "0+100x120",
  [`${requests}_bucket{http_route="/v2", le="+Inf"}`]: "0+100x120",
  // Long polls.
  [`${requests}_bucket{http_route="/v2/projects/:project_id/events", le="1"}`]: "0x120",
  [`${requests}_bucket{http_route="/v2/projects/:project_id/events", le="+Inf"}`]: "0+100x120",
  // A receiver fails.
  tenure_webhook_deliveries_oldest_due_seconds: "5+60x120",
  tenure_webhook_deliveries_late_seconds: "5x120",
  [`${requests}_bucket{http_route="/v2/projects/:project_id/memberships/import", le="1"}`]: "0x120",
  [`${requests}_bucket{http_route="/v2/projects/:project_id/memberships/import", le="+Inf"}`]:
    "0+100x120",
  'tenure_encryption_key_missing{tenure_encryption_key_id="k1"}': "0x120",
  [`${attempts}{tenure_webhook_outcome="delivered"}`]: "0+2x120",
  [`${attempts}{tenure_webhook_outcome="failed"}`]: "0+1x120",
  // Webhooks stay disabled: the alert must not last forever.
  tenure_webhook_disabled: "3x120",
  tenure_rate_limit_without_store: "0x120",
  tenure_rate_limit_suspended_keys: "0x120",
  'db_client_connection_pending_requests{instance="a"}': "0 5 0x118",
  'nodejs_eventloop_delay_p99_seconds{instance="a"}': "0.01x120",
}

const file = join(temporaryFolder(), "test.yaml")

/** Adds the label of the job to a series. */
const ofJob = (series: string): string =>
  series.includes("{") ? series.replace("{", '{job="tenure", ') : `${series}{job="tenure"}`

/** Evaluates the alerts on series, by promtool. */
const evaluate = async (series: Case["series"], expected: ReadonlyArray<object>): Promise<void> => {
  const input_series = Object.entries(series).map(([name, values]) => ({
    series: ofJob(name),
    values,
  }))
  const test = { interval: "1m", input_series, alert_rule_test: expected }
  const rule_files = [pathOf("alerts.yaml")]
  await writeFile(file, stringify({ rule_files, evaluation_interval: "1m", tests: [test] }))
  await promtool("test", "rules", file)
}

const title =
  missing === undefined
    ? "the alerts"
    : `the alerts, skipped because there is no Prometheus: ${missing}`

afterEach(endAll)

describe.skipIf(missing !== undefined)(title, () => {
  it("are all in the table", () => {
    expect([...new Set(cases.map(({ alert }) => alert))]).toEqual(rules.map(({ alert }) => alert))
  })

  it("are in files that Prometheus takes", async () => {
    await promtool("check", "rules", pathOf("alerts.yaml"))
    await promtool("check", "config", pathOf("prometheus.yaml"))
  })

  it.each(cases)("$alert fires in minute $fires, and not in $silent", async (one) => {
    const { annotations, labels } = rules.find(({ alert }) => alert === one.alert) ?? {}
    const fired = {
      exp_labels: { ...labels, ...one.labels },
      exp_annotations: { ...annotations, ...(one.summary && { summary: one.summary }) },
    }
    await evaluate(one.series, [
      ...one.silent.map((minute) => ({ eval_time: `${minute}m`, alertname: one.alert })),
      { eval_time: `${one.fires}m`, alertname: one.alert, exp_alerts: [fired] },
    ])
  })

  it("are silent for hours where all is well", async () => {
    const minutes = [1, 30, 60, 120]
    await evaluate(
      healthy,
      rules.flatMap(({ alert }) =>
        minutes.map((minute) => ({ eval_time: `${minute}m`, alertname: alert })),
      ),
    )
  })

  it("ask a real server for what it has, as the dashboard does, and fire when it ends", async () => {
    const server = await startServer({ METRICS_PORT: "0" })
    const [, target = ""] = await server.line(/"Metrics are at http:\/\/(\S+)\/metrics"/)
    await send(server.url, { method: "GET", path: "/v2/projects/demo/memberships" })
    // So that it fires at once, rather than after minutes.
    const prometheus = await startPrometheus(target, alerts.replaceAll(/^ +for: .*\n/gm, ""))
    onTestFinished(prometheus.stop)
    const query = async (expr: string) =>
      (await prometheus.ask(`/api/v1/query?query=${encodeURIComponent(expr)}`)).result
    const states = async (): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
      const [group] = (await prometheus.ask("/api/v1/rules")).groups
      return group.rules.map(({ health, lastError, name, state }: Record<string, string>) => [
        name,
        health,
        lastError ?? "",
        state,
      ])
    }
    const names = rules.map(({ alert }) => alert)

    await expect.poll(() => query('up{job="tenure"} == 1')).toHaveLength(1)
    const seen: ReadonlyArray<string> = await prometheus.ask("/api/v1/label/__name__/values")
    const possible = Object.entries(instruments).flatMap(([name, { type }]) => {
      const whole = prometheusName(name)
      return type === "histogram" ? [`${whole}_bucket`, `${whole}_count`, `${whole}_sum`] : [whole]
    })
    const known = new Set(possible)
    const own = seen.filter((name) => !/^(up|scrape_|ALERTS)/.test(name))
    expect(own).toContain(`${requests}_count`)
    expect(own.filter((name) => !known.has(name))).toEqual([])
    const { panels } = JSON.parse(await readFile(pathOf("dashboard.json"), "utf8"))
    for (const { targets = [] } of panels) {
      for (const { expr } of targets) {
        const asked = expr.replaceAll("$__rate_interval", "5m").replaceAll("$job", "tenure")
        expect(await query(asked), asked).toBeInstanceOf(Array)
      }
    }
    await expect.poll(states).toEqual(names.map((name) => [name, "ok", "", "inactive"]))

    server.kill("SIGKILL")
    await expect.poll(states).toContainEqual(["TenureDown", "ok", "", "firing"])
  })
})
