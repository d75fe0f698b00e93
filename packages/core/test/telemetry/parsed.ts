import parse from "parse-prometheus-text-format"

/** A metric series as Prometheus reads it: its attributes, and its value or its observation count. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

// The parser does not support labels on histograms: their parts become separate metrics.
const ofHistograms = /^# TYPE (\S+) histogram$/gm

/** Reads each metric's series from the Prometheus text format. A histogram has its counts. */
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
