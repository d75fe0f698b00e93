/** Prints the AsyncAPI document as a page. */

import { paragraphs, prose, sample } from "./markdown.ts"
import { type Schemas, printer, referenceOf } from "./schema.ts"

/** The AsyncAPI 3 subset shown on the page. */
export interface Document {
  readonly info: { readonly description: string }
  readonly channels: Readonly<
    Record<
      string,
      {
        readonly title: string
        readonly description: string
        readonly address?: string
        readonly messages: Readonly<Record<string, object>>
      }
    >
  >
  readonly components: {
    readonly schemas: Schemas
    readonly messages: Readonly<
      Record<
        string,
        {
          readonly title: string
          readonly summary: string
          readonly payload: Readonly<Record<string, unknown>>
          readonly examples: ReadonlyArray<{ readonly payload: unknown }>
        }
      >
    >
  }
}

/** Prints the page. @param file - the document's path on the site */
export const print = ({ channels, components, info }: Document, file: string): string => {
  const { fieldsOf, objects } = printer(components.schemas)
  const message = (key: string): string => {
    const found = components.messages[key]
    if (found === undefined) return ""
    const { examples, payload, summary, title } = found
    return paragraphs(
      `### \`${title}\` {#${key}}`,
      prose(summary),
      fieldsOf(payload),
      ...examples.map((example) => sample(example.payload)),
    )
  }
  return paragraphs(
    "# Events and messages",
    `${prose(info.description)} This page shows the [AsyncAPI document](${file}){target="_self"}, which a server has at \`/v2/asyncapi.json\`. [The feed](../feed.md) and [Webhooks](../webhooks.md) are the pages to begin with.`,
    ...Object.values(channels).map(({ address, description, messages, title }) =>
      paragraphs(
        `## ${title}`,
        prose(description),
        address === undefined ? "" : `\`${address}\``,
        ...Object.values(messages).map((one) => message(referenceOf({ ...one }) ?? "")),
      ),
    ),
    "## Objects",
    objects(),
  )
}
