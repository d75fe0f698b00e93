/** Removes code from the bundle, because the page never calls it. */

import { readFile } from "node:fs/promises"
import type { Plugin } from "esbuild"

/** Text to replace: a text alone, or from there up to an end. */
interface Cut {
  readonly from: string
  readonly upTo?: string
  readonly by?: string
}

// uPlot is built from parts, too, but only the whole is on npm. Axes here count in seconds, in UTC, so
// local time, its formats, the legend, logarithms and other line types are left out.
const plotCuts: ReadonlyArray<Cut> = [
  {
    from: "function rangeLog(min",
    upTo: "const rangePad",
    by: "function rangeLog() {}\nfunction rangeAsinh() {}\n",
  },
  {
    from: "function logAxisSplits(",
    upTo: "function numSeriesVal",
    by: "function logAxisSplits() {}\nfunction asinhAxisSplits() {}\nfunction log10AxisValsFilt() {}\nfunction log2AxisValsFilt() {}\n",
  },
  { from: "const linearPath = linear() ;", by: "const linearPath = null;" },
  { from: "const pointsPath = points() ;", by: "const pointsPath = null;" },
  { from: "uPlot.assign = assign;", upTo: "export {", by: "uPlot.paths = { bars };\n" },
  { from: "const [ timeIncrsMs,", upTo: "// base 2" },
  { from: "\tconst _tzDate  =", upTo: "\tconst activeIdxs" },
  {
    from: "isTime ? (isStr(sv) ? timeSeriesVal(_tzDate, timeSeriesStamp(sv, _fmtDate)) : sv || _timeSeriesVal) : sv",
    by: "sv",
  },
  { from: "(isTime ? (ms == 1 ? timeIncrsMs : timeIncrsS) : numIncrs)", by: "numIncrs" },
  { from: "isTime && sc.distr == 1 ? _timeAxisSplits : ", by: "" },
  { from: "\t\t\t\tisTime ? (\n", upTo: "\t\t\t\t) : av || numAxisVals", by: "\t\t\t\tfalse ? (0" },
  { from: "\tif (showLegend) {", upTo: "\tconst son  =" },
  {
    from: "\t\tlet cells = [];\n\n\t\tlet row = placeTag",
    upTo: "\tconst mouseListeners",
    by: "\t\treturn nullNullTuple;\n\t}\n\n",
  },
]

const apply = (text: string, { by = "", from, upTo }: Cut): string => {
  const start = text.indexOf(from)
  const end = upTo === undefined ? start + from.length : text.indexOf(upTo, start)
  if (start === -1 || end === -1) throw new Error(`uPlot has changed: there is no ${from}`)
  return text.slice(0, start) + by + text.slice(end)
}

/** The plugin. */
export const slim: Plugin = {
  name: "slim",
  setup: (build) => {
    build.onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => ({
      contents: plotCuts.reduce(apply, await readFile(path, "utf8")),
    }))
    // The page follows no stream.
    build.onLoad({ filter: /client[/\\]src[/\\]subscribe\.ts$/ }, () => ({
      contents: "export const makeSubscribe = () => undefined",
    }))
  },
}
