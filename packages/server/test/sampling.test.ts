/** Samplers decide as OpenTelemetry describes them. */

import * as Context from "effect/Context"
import * as Option from "effect/Option"
import { NativeSpan, externalSpan } from "effect/Tracer"
import { expect, it } from "vitest"
import { decideSampled, samplers } from "../src/sampling.ts"

const local = (sampled: boolean) =>
  new NativeSpan({
    name: "",
    parent: Option.none(),
    annotations: Context.empty(),
    links: [],
    startTime: 0n,
    kind: "server",
    sampled,
  })

const remote = (sampled: boolean, traceId = "1".padStart(32, "0")) =>
  externalSpan({ traceId, spanId: "b7ad6b7169203331", sampled })

it.each(samplers)("%s records the spans in a span as that one", (sampler) => {
  for (const sampled of [true, false]) {
    expect(decideSampled(sampler, 0.5, local(sampled), 0.2)).toBe(sampled)
  }
})

it.each([
  ["always_on", true, true, true],
  ["always_off", false, false, false],
  ["traceidratio", true, true, true],
  ["parentbased_always_on", true, false, true],
  ["parentbased_always_off", true, false, false],
  ["parentbased_traceidratio", true, false, true],
] as const)(
  "%s decides on a recorded trace: %j, one that is not: %j, a new one: %j",
  (sampler, recorded, other, own) => {
    expect([
      decideSampled(sampler, 0.5, remote(true), 0.2),
      decideSampled(sampler, 0.5, remote(false), 0.2),
      decideSampled(sampler, 0.5, undefined, 0.2),
    ]).toEqual([recorded, other, own])
  },
)

it("records by the id of a trace the part that the ratio says", () => {
  const early = remote(true, `${"f".repeat(19)}4${"0".repeat(12)}`)
  expect([0.2, 0.3].map((ratio) => decideSampled("traceidratio", ratio, early, 0))).toEqual([
    false,
    true,
  ])
  expect(decideSampled("traceidratio", 0.3, undefined, 0.4)).toBe(false)
})
