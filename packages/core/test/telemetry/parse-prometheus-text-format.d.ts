declare module "parse-prometheus-text-format" {
  /** Parses the Prometheus text format. Throws a `SyntaxError` if the text is invalid. */
  export default function parse(text: string): ReadonlyArray<{
    readonly name: string
    readonly help: string
    readonly type: string
    readonly metrics: ReadonlyArray<{
      readonly labels?: Readonly<Record<string, string>>
      readonly value?: string
    }>
  }>
}
