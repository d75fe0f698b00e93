declare module "parse-prometheus-text-format" {
  /** Parses text in the format of Prometheus. Throws a `SyntaxError` if it is invalid. */
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
