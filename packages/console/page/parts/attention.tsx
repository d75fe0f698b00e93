/** The problem list, with one button for each problem. */

import type { ComponentChildren } from "preact"
import { Icon } from "./text.tsx"

/** Something wrong. */
export interface Need {
  readonly key: string
  /** The problem. */
  readonly what: ComponentChildren
  /** Why, with the last result. */
  readonly why: ComponentChildren
  readonly since?: ComponentChildren
  readonly waits?: ComponentChildren
  readonly button: ComponentChildren
  readonly isMild?: boolean
}

/** The list, or one line if nothing is wrong. */
export const Attention = ({
  fine,
  needs,
}: {
  readonly needs: ReadonlyArray<Need>
  readonly fine: string
}) =>
  needs.length === 0 ? (
    <p class="fine">
      <Icon of="check" />
      {fine}
    </p>
  ) : (
    <section>
      <h2>Needs attention</h2>
      <ul class="needs">
        {needs.map(({ button, isMild, key, since, waits, what, why }) => (
          <li key={key} class={isMild === true ? "warn" : undefined}>
            <div class="long">{what}</div>
            <div class="long">{why}</div>
            <div class="dim">{since}</div>
            <div class="dim">{waits}</div>
            <div>{button}</div>
          </li>
        ))}
      </ul>
    </section>
  )
