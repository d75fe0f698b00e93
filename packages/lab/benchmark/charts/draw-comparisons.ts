/** Draws comparisons with alternatives as one picture. */

import { type Comparison, timesOf } from "./alternatives.ts"
import { barStart, barWidth, lookOf, render } from "./draw.ts"
import { type Theme, colourOf, page } from "./palette.ts"

const title = "Is Tenure better than what you would use instead?"

const subtitle = "Times better than the best alternative, on a logarithmic scale"

// Each comparison has two lines of text.
const rowHeight = 46

// The left edge of the texts, and the right edge of the figures.
const [textStart, figureEnd] = [{ value: -barStart }, { value: -12 }]

/** Draws how many times better Tenure is than the best alternative of each comparison. */
export const drawComparisons = (
  comparisons: ReadonlyArray<Comparison>,
  theme: Theme,
): Promise<string> => {
  const values = comparisons.flatMap(({ alternatives: [best], title: question }) =>
    best === undefined
      ? []
      : [
          {
            question,
            beside: `beside ${best.name}`,
            better: best.better,
            times: timesOf(best.better),
          },
        ],
  )
  const ratios = values.map(({ better }) => better)
  const most = Math.max(2, ...ratios)
  const muted = page.muted[theme]
  return render({
    ...lookOf(title, [subtitle], theme),
    width: barWidth,
    height: { step: rowHeight },
    data: { values },
    encoding: { y: { field: "question", type: "nominal", sort: null, axis: null } },
    layer: [
      {
        mark: { type: "bar", height: 18 },
        encoding: {
          x: {
            field: "better",
            type: "quantitative",
            title: null,
            scale: { type: "log", domain: [Math.min(0.5, ...ratios), most] },
            axis: {
              values: [1, 10, 100, 1000].filter((value) => value <= most),
              labelExpr: "format(datum.value, ',') + ' ×'",
              labelColor: muted,
              domain: false,
              ticks: false,
              gridColor: muted,
              gridOpacity: 0.4,
            },
          },
          x2: { datum: 1 },
          color: { value: colourOf("Tenure", theme) },
        },
      },
      {
        mark: { type: "text", align: "left", dy: -8, fontWeight: 600 },
        encoding: { x: textStart, text: { field: "question", type: "nominal" } },
      },
      {
        mark: { type: "text", align: "left", dy: 10, color: muted },
        encoding: { x: textStart, text: { field: "beside", type: "nominal" } },
      },
      {
        mark: { type: "text", align: "right", fontWeight: 600 },
        encoding: { x: figureEnd, text: { field: "times", type: "nominal" } },
      },
    ],
  })
}
