/** Draws charts as SVG, with Vega-Lite. */

import { View, parse } from "vega"
import { type TopLevelSpec, compile } from "vega-lite"
import { digits } from "../report/table.ts"
import type { Group } from "./bars.ts"
import { type Theme, colourOf, page } from "./palette.ts"
import type { Chart } from "./questions.ts"

const font = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"

// Names, then figures, then bars.
const [nameWidth, figureWidth, rowHeight, margin] = [290, 80, 26, 20]

/** The width of the longest bar. */
export const barWidth = 420

/** The width of what is left of bars. */
export const barStart = nameWidth + figureWidth

type Panel = Extract<TopLevelSpec, { vconcat: unknown }>["vconcat"][number]

/** The names, figures and bars of one group, and targets across the bars. */
const panelOf = ({ bars, title }: Group, theme: Theme): Panel => {
  const most = Math.max(...bars.flatMap(({ target = 0, value }) => [value, target]))
  const values = bars.map(({ label, target, value, who }) => ({
    label,
    value,
    target,
    figure: digits(value),
    colour: colourOf(who, theme),
    weight: label.startsWith("Tenure") ? 600 : 400,
  }))
  // With room for half of a target at the end.
  const scale = { domain: [0, 1.01 * most], nice: false }
  const x = (field: string) => ({ field, type: "quantitative" as const, scale, axis: null })
  return {
    title: { text: title, anchor: "start", frame: "group", dx: -barStart, offset: 6 },
    width: barWidth,
    height: { step: rowHeight },
    data: { values },
    encoding: {
      y: {
        field: "label",
        type: "nominal",
        sort: null,
        title: null,
        scale: { paddingInner: 0.28, paddingOuter: 0.1 },
      },
    },
    layer: [
      {
        mark: { type: "bar", cornerRadiusEnd: 3 },
        encoding: { x: x("value"), color: { field: "colour", type: "nominal", scale: null } },
      },
      {
        mark: { type: "text", align: "right", fontWeight: { expr: "datum.weight" } },
        encoding: { x: { value: -12 }, text: { field: "figure", type: "nominal" } },
      },
      {
        transform: [{ filter: "isValid(datum.target)" }],
        mark: {
          type: "tick",
          thickness: 3,
          bandSize: rowHeight,
          color: page.text[theme],
          stroke: page.background[theme],
          strokeWidth: 1,
        },
        encoding: { x: x("target") },
      },
    ],
  }
}

const configOf = (theme: Theme) =>
  ({
    font,
    view: { stroke: null },
    axisY: {
      domain: false,
      ticks: false,
      labelAlign: "left",
      labelColor: page.text[theme],
      labelFontSize: 13,
      labelFontWeight: {
        condition: { test: "indexof(datum.label, 'Tenure') === 0", value: 600 },
        value: 400,
      },
      labelLimit: 0,
      labelPadding: barStart,
      minExtent: barStart,
      maxExtent: barStart,
    },
    text: { color: page.text[theme], fontSize: 13 },
    title: { color: page.muted[theme], fontSize: 13, fontWeight: 600 },
    concat: { spacing: 18 },
  }) as const

const hasTarget = ({ bars }: Group): boolean => bars.some(({ target }) => target !== undefined)

const legendOf = (groups: ReadonlyArray<Group>): string =>
  groups.some(hasTarget) ? "Longer is better. A short line is a target." : "Longer is better."

/** The look that all charts share. */
export const lookOf = (title: string, subtitle: [string, ...Array<string>], theme: Theme) =>
  ({
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    description: `${title} ${subtitle[0]}.`,
    background: page.background[theme],
    padding: margin,
    title: {
      text: title,
      subtitle,
      anchor: "start",
      color: page.text[theme],
      fontSize: 18,
      subtitleColor: page.muted[theme],
      subtitleFontSize: 13,
      subtitlePadding: 6,
      offset: 16,
    },
    config: configOf(theme),
  }) as const

/** Numbers clips from 0 in each picture: Vega counts them in all pictures that a process draws. */
const withOwnClips = (svg: string): string => {
  const numbers = new Map<string, number>()
  return svg.replaceAll(/\bclip\d+/g, (id) => {
    const number = numbers.get(id) ?? numbers.size
    numbers.set(id, number)
    return `clip${number}`
  })
}

/** Prints a chart as SVG. */
export const render = async (spec: TopLevelSpec): Promise<string> =>
  withOwnClips(await new View(parse(compile(spec).spec), { renderer: "none" }).toSVG())

/** Draws a chart for a page. */
export const draw = ({ groups, subtitle, title }: Chart, theme: Theme): Promise<string> =>
  render({
    ...lookOf(title, [subtitle, legendOf(groups)], theme),
    vconcat: groups.map((group) => panelOf(group, theme)),
  })
