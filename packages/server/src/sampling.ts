/** Which traces are recorded, as the samplers of OpenTelemetry decide it. */

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

/** Returns the place of a trace between 0 and 1, the same for all who know its id. */
const placeOf = (traceId: string): number => Number.parseInt(traceId.slice(-13), 16) / 2 ** 52

/**
 * Decides whether a span is recorded.
 *
 * @param ratio - the part of the traces to record, from 0 to 1, for samplers by ratio
 * @param parent - the span that it continues, if any
 * @param random - a number from 0 to 1 in place of the id of a new trace
 */
export const decide = (
  sampler: Sampler,
  ratio: number,
  parent: Tracer.AnySpan | undefined,
  random: number,
): boolean => {
  const isDecided = parent?._tag === "Span" || sampler.startsWith("parentbased")
  if (parent !== undefined && isDecided) return parent.sampled
  return (parent === undefined ? random : placeOf(parent.traceId)) < ratioOf(sampler, ratio)
}

/** Makes the tracer of the context, if it is not the one of Effect, record what a sampler chooses. */
export const layer = (sampler: Sampler, ratio: number): Layer.Layer<never> =>
  Layer.effect(
    Tracer.Tracer,
    Effect.map(Tracer.Tracer, (tracer) =>
      tracer === Tracer.nativeTracer
        ? tracer
        : Tracer.make({
            span: (options) => {
              const parent = Option.getOrUndefined(options.parent)
              const sampled = decide(sampler, ratio, parent, Math.random())
              return tracer.span({ ...options, sampled })
            },
          }),
    ),
  )
