/** Decides which traces are recorded, as OpenTelemetry's samplers do. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

/** The names of the samplers. */
export const samplers = [
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
  "always_on",
  "always_off",
  "traceidratio",
] as const

/** The name of a sampler. */
export type Sampler = (typeof samplers)[number]

const ratioOf = (sampler: Sampler, ratio: number): number => {
  if (sampler.endsWith("always_on")) return 1
  return sampler.endsWith("always_off") ? 0 : ratio
}

/** Converts a trace id to a number from 0 to 1, the same on every server. */
const fractionOf = (traceId: string): number => Number.parseInt(traceId.slice(-13), 16) / 2 ** 52

/**
 * Decides whether a span is recorded.
 *
 * @param ratio - the part of all traces to record, from 0 to 1, for samplers by ratio
 * @param parent - the span that it continues, if any
 * @param random - a number from 0 to 1 in place of a new trace's id
 */
export const decideSampled = (
  sampler: Sampler,
  ratio: number,
  parent: Tracer.AnySpan | undefined,
  random: number,
): boolean => {
  const isDecided = parent?._tag === "Span" || sampler.startsWith("parentbased")
  if (parent !== undefined && isDecided) return parent.sampled
  return (parent === undefined ? random : fractionOf(parent.traceId)) < ratioOf(sampler, ratio)
}

/** Applies a sampler to the tracer, unless that is Effect's own, which exports nothing. */
export const samplingLayer = (sampler: Sampler, ratio: number): Layer.Layer<never> =>
  Layer.effect(
    Tracer.Tracer,
    Effect.map(Tracer.Tracer, (tracer) =>
      tracer === Tracer.nativeTracer
        ? tracer
        : Tracer.make({
            span: (options) => {
              const parent = Option.getOrUndefined(options.parent)
              const sampled = decideSampled(sampler, ratio, parent, Math.random())
              return tracer.span({ ...options, sampled })
            },
          }),
    ),
  )
