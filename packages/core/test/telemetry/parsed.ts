import parse from "parse-prometheus-text-format"

/** A series of metrics as Prometheus reads them: its attributes, and its value or its number of values. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

// The parser knows no histograms with labels: their parts are metrics of their own.
const ofHistograms = /^# TYPE (\S+) histogram$/gm

/** Reads text in the format of Prometheus: the series of each metric. A histogram has its counts. */
export const parsed = (text: string): ReadonlyMap<string, ReadonlyArray<Series>> => {
  const all = new Map<string, Array<Series>>()
  for (const { metrics, name } of parse(text.replaceAll(ofHistograms, ""))) {
    if (/_(bucket|sum)$/.test(name)) continue
    const whole = name.replace(/_count$/, "")
    const series = metrics.map(({ labels = {}, value }) => ({ labels, value: Number(value) }))
    all.set(whole, [...(all.get(whole) ?? []), ...series])
  }
  return all
}
