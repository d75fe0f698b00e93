/** Counts by minute or by day: as a picture, in a sentence, and as a table. */

import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import { onScheme } from "./environment.tsx"

/** A series with one number for each time in the picture. */
interface Series {
  readonly name: string
  readonly tone: "good" | "bad" | "warn" | "wait" | "rest" | "link"
  readonly values: ReadonlyArray<number | null>
  /** Wide bars, unless something is drawn over them. */
  readonly shape?: "thin" | "outline"
}

interface PlotProps {
  readonly title: string
  /** Contents beside the title. */
  readonly children?: ComponentChildren
  readonly unit: "minute" | "day"
  /** When each minute or day begins, in ISO text, oldest first. */
  readonly times: ReadonlyArray<string>
  /** Later series are drawn over the first, or stacked on it. */
  readonly series: ReadonlyArray<Series>
  readonly isStacked?: boolean
  /** A vertical line's time, in ISO text. */
  readonly mark?: string
}

const seconds = { minute: 60, day: 86_400 }

// Distances between time labels, in seconds.
const everySeconds = {
  minute: [300, 600, 900, 1800],
  day: [1, 7, 14, 28, 56, 112].map((days) => days * 86_400),
}

// Distances between count lines.
const everyCount = Array.from({ length: 9 }, (_, zeros) => 10 ** zeros).flatMap((one) => [
  one,
  2 * one,
  5 * one,
])

const height = 150

const fontSize = 11

const day = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", timeZone: "UTC" })

const labelOf = (unit: PlotProps["unit"], time: string): string =>
  unit === "day" ? day.format(new Date(time)) : time.slice(11, 16)

const countOf = (count: number | null | undefined): string =>
  typeof count === "number" ? count.toLocaleString("en") : "–"

const sumOf = (values: Series["values"]): number =>
  values.reduce<number>((sum, one) => sum + (one ?? 0), 0)

const secondsOf = (iso: string): number => Date.parse(iso) / 1000

/** Adds up stacked series, and draws the highest first. */
const drawn = ({ isStacked = false, series }: PlotProps): ReadonlyArray<Series> => {
  if (!isStacked) return series
  const added = series.map((one, index) => ({
    ...one,
    values: one.values.map((_, at) =>
      series.slice(0, index + 1).reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
    ),
  }))
  return added.toReversed()
}

/** Returns a bar's fraction of a step, and its maximum width in pixels. */
const widthOf = (shape: Series["shape"]): [number, number] => {
  if (shape === undefined) return [0.72, 28]
  return shape === "thin" ? [0.22, 7] : [0.86, 34]
}

const makePlot = (place: HTMLElement, props: PlotProps, say: (text: string) => void): uPlot => {
  const { mark, series, times, unit } = props
  const colour = (name: string) => getComputedStyle(place).getPropertyValue(`--${name}`)
  const step = seconds[unit]
  const bars = drawn(props)
  const axis: uPlot.Axis = {
    font: `${fontSize}px ${getComputedStyle(place).fontFamily}`,
    stroke: () => colour("dim"),
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { show: false },
  }
  const markTime = mark === undefined ? undefined : secondsOf(mark)
  return new uPlot(
    {
      width: place.clientWidth,
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: (_, from, to) => [from - step / 2, to + step / 2] },
        y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 24,
          gap: 4,
          space: 64,
          incrs: everySeconds[unit],
          values: (_, all) => all.map((time) => labelOf(unit, new Date(time * 1000).toISOString())),
        },
        {
          ...axis,
          size: 36,
          gap: 4,
          space: 34,
          incrs: everyCount,
          values: (_, all) => all.map(countOf),
        },
      ],
      series: [
        {},
        ...bars.map(({ shape, tone }) => ({
          ...(shape === "outline"
            ? { stroke: () => colour(tone), width: 1.5 }
            : { fill: () => colour(tone), width: 0 }),
          points: { show: false },
          ...(uPlot.paths.bars && {
            paths: uPlot.paths.bars({ size: widthOf(shape), radius: 0.15 }),
          }),
        })),
      ],
      hooks: {
        setCursor: [
          ({ cursor: { idx } }) => {
            const time = typeof idx === "number" ? times[idx] : undefined
            if (time === undefined || typeof idx !== "number") return say("")
            const counts = series.map(({ name, values }) => `${countOf(values[idx])} ${name}`)
            say(`${labelOf(unit, time)}: ${counts.join(", ")}`)
          },
        ],
        draw: [
          (plot) => {
            if (markTime === undefined) return
            const { ctx } = plot
            const x = Math.round(plot.valToPos(markTime, "x", true))
            ctx.save()
            ctx.strokeStyle = colour("ink")
            ctx.lineWidth = devicePixelRatio
            ctx.beginPath()
            ctx.moveTo(x, plot.bbox.top)
            ctx.lineTo(x, plot.bbox.top + plot.bbox.height)
            ctx.stroke()
            ctx.restore()
          },
        ],
      },
    },
    [times.map(secondsOf), ...bars.map(({ values }) => [...values])],
    place,
  )
}

/** Describes the picture for screen readers. */
const inWords = ({ series, title }: PlotProps): string =>
  `${title}: ${series.map(({ name, values }) => `${countOf(sumOf(values))} ${name}`).join(", ")}`

const heads = { minute: "Minute", quarter: "Quarter of an hour", day: "Day" }

/** The picture as a table, without zeros. */
export const CountsTable = ({
  series,
  times,
  unit,
}: Pick<PlotProps, "times"> & {
  readonly unit: keyof typeof heads
  readonly series: ReadonlyArray<Pick<Series, "name" | "values">>
}) => (
  <details>
    <summary>As a table</summary>
    <table>
      <thead>
        <tr>
          <th scope="col">{heads[unit]} (UTC)</th>
          {series.map(({ name }) => (
            <th key={name} scope="col" class="number">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {times.map(
          (time, index) =>
            series.some(({ values }) => (values[index] ?? 0) > 0) && (
              <tr key={time}>
                <td>
                  <time dateTime={time}>
                    {time.slice(0, unit === "day" ? 10 : 16).replace("T", " ")}
                  </time>
                </td>
                {series.map(({ name, values }) => (
                  <td key={name} class="number">
                    {countOf(values[index])}
                  </td>
                ))}
              </tr>
            ),
        )}
      </tbody>
    </table>
  </details>
)

/** Bars. */
export const Plot = (props: PlotProps) => {
  const { children, series, title } = props
  const place = useRef<HTMLDivElement>(null)
  const output = useRef<HTMLSpanElement>(null)
  const { current } = place
  useEffect(() => {
    const canvas = place.current
    if (canvas === null) return undefined
    const plot = makePlot(canvas, props, (text) => {
      if (output.current !== null) output.current.textContent = text
    })
    const sizes = new ResizeObserver(() => plot.setSize({ width: canvas.clientWidth, height }))
    sizes.observe(canvas)
    const stop = onScheme(() => plot.redraw())
    return () => {
      stop()
      sizes.disconnect()
      plot.destroy()
    }
  }, [current, JSON.stringify([props.times, series, props.mark])])
  const isEmpty = series.every(({ values }) => sumOf(values) === 0)
  return (
    <figure class="plot">
      <figcaption>
        <h2>{title}</h2>
        {series.map(({ name, tone, values }) => (
          <span key={name} class={`state ${tone}`}>
            {countOf(sumOf(values))} {name}
          </span>
        ))}
        {children}
        <span ref={output} class="readout" aria-hidden="true" />
      </figcaption>
      <div ref={place} class="canvas" role="img" aria-label={inWords(props)} />
      {!isEmpty && <CountsTable {...props} />}
    </figure>
  )
}
