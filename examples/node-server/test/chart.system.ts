/** Helm renders the chart as Kubernetes needs it. */

import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { helm, missing } from "./helm.ts"
import { environmentOf, objectsOf, stopSeconds, unknownIn } from "./kubernetes.ts"

const folder = fileURLToPath(new URL("../chart", import.meta.url))

const rendered = async (values: Readonly<Record<string, unknown>> = {}) => {
  const given = Object.entries(values).flatMap(([name, value]) => [
    "--set-json",
    `${name}=${JSON.stringify(value)}`,
  ])
  return objectsOf(await helm("template", "example", folder, ...given))
}

const title =
  missing === undefined ? "the chart" : `the chart, skipped because there is no Helm: ${missing}`

describe.skipIf(missing !== undefined)(title, () => {
  it("passes the checks of Helm", async () => {
    expect(await helm("lint", "--strict", folder)).toContain("1 chart(s) linted, 0 chart(s) failed")
  })

  it("makes what Kubernetes takes, and no monitor unless asked", async () => {
    expect([...(await rendered()).keys()].toSorted()).toEqual([
      "Deployment",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Service",
    ])
  })

  it("has the pods of the plain manifests", async () => {
    const plain = objectsOf(
      await readFile(new URL("../kubernetes.yaml", import.meta.url), "utf8"),
    ).get("Deployment").spec
    const { spec } = (await rendered()).get("Deployment")
    expect(spec.strategy).toEqual(plain.strategy)
    const [server] = spec.template.spec.containers
    const [ofPlain] = plain.template.spec.containers
    for (const part of [
      "livenessProbe",
      "readinessProbe",
      "resources",
      "securityContext",
      "startupProbe",
    ]) {
      expect(server[part], part).toEqual(ofPlain[part])
    }
    expect(spec.template.spec.securityContext).toEqual(plain.template.spec.securityContext)
  })

  it("sets variables that the server takes, and gives it the time to stop", async () => {
    const objects = await rendered({
      trustedProxies: "10.0.0.0/8,fd00::/8",
      drainDelay: 7,
      env: { LOG_LEVEL: "warn" },
    })
    const { containers, terminationGracePeriodSeconds } =
      objects.get("Deployment").spec.template.spec
    const environment = environmentOf(containers[0])
    expect(environment).toMatchObject({ TRUSTED_PROXIES: "10.0.0.0/8,fd00::/8", LOG_LEVEL: "warn" })
    expect(unknownIn(environment)).toEqual([])
    expect(terminationGracePeriodSeconds).toBeGreaterThan(stopSeconds(environment))
  })

  it("takes secrets by reference alone", async () => {
    const { spec } = (await rendered({ secrets: { server: "one", owner: "two" } })).get(
      "Deployment",
    ).spec.template
    expect(spec.containers[0].envFrom).toEqual([{ secretRef: { name: "one" } }])
    expect(spec.initContainers[0].envFrom).toEqual([{ secretRef: { name: "two" } }])
  })

  it("names the image by its digest, if given, and by its version otherwise", async () => {
    const imageOf = async (values?: Readonly<Record<string, unknown>>) =>
      (await rendered(values)).get("Deployment").spec.template.spec.containers[0].image
    const { appVersion } = parse(await helm("show", "chart", folder))
    const repository = "ghcr.io/tenure/tenure-server"
    expect(await imageOf()).toBe(`${repository}:${appVersion}`)
    expect(await imageOf({ "image.digest": "sha256:1" })).toBe(`${repository}@sha256:1`)
  })

  it("opens the metrics to the monitoring alone", async () => {
    const peer = { namespaceSelector: { matchLabels: { name: "monitoring" } } }
    const closed = (await rendered()).get("NetworkPolicy").spec
    expect(closed.ingress).toEqual([{ ports: [{ port: "http" }] }])
    const objects = await rendered({
      "networkPolicy.monitoring": [peer],
      "metrics.podMonitor.enabled": true,
    })
    expect(objects.get("NetworkPolicy").spec.ingress).toContainEqual({
      ports: [{ port: "metrics" }],
      from: [peer],
    })
    const [endpoint] = objects.get("PodMonitor").spec.podMetricsEndpoints
    const { ports } = objects.get("Deployment").spec.template.spec.containers[0]
    expect(ports.map(({ name }: { name: string }) => name)).toContain(endpoint.port)
    expect(endpoint.relabelings).toContainEqual({
      action: "replace",
      targetLabel: "job",
      replacement: "tenure",
    })
  })

  it("leaves out what is turned off", async () => {
    const objects = await rendered({
      "networkPolicy.enabled": false,
      "disruptionBudget.enabled": false,
      "metrics.enabled": false,
    })
    expect([...objects.keys()].toSorted()).toEqual(["Deployment", "Service"])
    expect(JSON.stringify(objects.get("Deployment"))).not.toMatch(/metrics/i)
  })
})
