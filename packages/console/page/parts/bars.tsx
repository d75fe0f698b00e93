/** Counts by the minute, as bars and as a table. */

import { Time } from "./text.tsx"

/** A series: its name and its bars' tone. */
interface Series {
  readonly name: string
  readonly tone: "good" | "bad" | "warn"
  readonly counts: ReadonlyArray<number>
}

interface ChartProps {
  readonly title: string
  /** When each minute began, in ISO text, oldest first. */
  readonly minutes: ReadonlyArray<string>
  readonly series: ReadonlyArray<Series>
}

const height = 60

const barWidth = 10

const sumOf = (counts: ReadonlyArray<number>): number => counts.reduce((sum, one) => sum + one, 0)

/** Describes the bars for screen readers. */
const inWords = (title: string, series: ReadonlyArray<Series>): string =>
  `${title}: ${series.map(({ counts, name }) => `${sumOf(counts)} ${name}`).join(", ")}`

/** One minute's bars, stacked upwards. */
const Stack = (props: {
  readonly series: ReadonlyArray<Series>
  readonly index: number
  readonly most: number
}) => {
  const { index, most, series } = props
  let top = height
  return (
    <>
      {series.map(({ counts, name, tone }) => {
        const size = ((counts[index] ?? 0) / Math.max(1, most)) * height
        top -= size
        return (
          size > 0 && (
            <rect
              key={name}
              class={tone}
              x={index * barWidth + 1}
              y={top.toFixed(2)}
              width={barWidth - 2}
              height={size.toFixed(2)}
            />
          )
        )
      })}
    </>
  )
}

/** The chart as a table, without empty minutes. */
const CountsTable = (props: ChartProps & { readonly totals: ReadonlyArray<number> }) => (
  <details>
    <summary>As a table</summary>
    <table>
      <thead>
        <tr>
          <th>Minute (UTC)</th>
          {props.series.map(({ name }) => (
            <th key={name}>{name}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.minutes.map(
          (minute, index) =>
            props.totals[index] !== 0 && (
              <tr key={minute}>
                <td>
                  <Time iso={minute} />
                </td>
                {props.series.map(({ counts, name }) => (
                  <td key={name} class="number">
                    {counts[index]?.toLocaleString("en")}
                  </td>
                ))}
              </tr>
            ),
        )}
      </tbody>
    </table>
  </details>
)

/** A bar chart with counts per minute. */
export const Bars = (props: ChartProps) => {
  const { minutes, series, title } = props
  const totals = minutes.map((_, index) => sumOf(series.map(({ counts }) => counts[index] ?? 0)))
  const most = Math.max(0, ...totals)
  return (
    <figure class="chart">
      <figcaption>
        {title}
        {series.map(({ counts, name, tone }) => (
          <span key={name} class={`state ${tone}`}>
            {sumOf(counts).toLocaleString("en")} {name}
          </span>
        ))}
      </figcaption>
      <svg
        viewBox={`0 0 ${minutes.length * barWidth} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={inWords(title, series)}
      >
        {minutes.map((minute, index) => (
          <Stack key={minute} series={series} index={index} most={most} />
        ))}
      </svg>
      <p class="axis" aria-hidden="true">
        <span>an hour ago</span>
        <span>{most.toLocaleString("en")} in a minute at most</span>
        <span>now</span>
      </p>
      {most > 0 && <CountsTable {...props} totals={totals} />}
    </figure>
  )
}
