/** Deliveries of events to webhooks, with their attempts. */

import type { Attempt, Delivery } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { amountOf, durationOf, State, Time } from "./text.tsx"

const resultOf = ({ error, status }: Attempt): string => error ?? String(status ?? "no response")

const Attempts = ({ of }: { readonly of: ReadonlyArray<Attempt> }) =>
  of.length === 0 ? (
    <p class="dim">No attempt has been made yet.</p>
  ) : (
    <table class="attempts">
      <thead>
        <tr>
          <th>Attempt (UTC)</th>
          <th>Took</th>
          <th>Result</th>
        </tr>
      </thead>
      <tbody>
        {of.map((attempt, index) => (
          <tr key={`${attempt.at} ${index}`}>
            <td>
              <Time iso={attempt.at} />
            </td>
            <td class="number">{durationOf(attempt.duration_ms)}</td>
            <td class={attempt.error === null ? undefined : "bad"}>{resultOf(attempt)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )

/** A delivery, which opens to show its attempts. */
export const DeliveryRow = (props: {
  readonly delivery: Pick<Delivery, "attempts" | "due_at" | "state">
  /** What it is about. */
  readonly name: ComponentChildren
  /** What is behind its attempts. */
  readonly children?: ComponentChildren
}) => {
  const { attempts, due_at, state } = props.delivery
  const last = attempts.at(-1)
  return (
    <li>
      <details>
        <summary>
          <span>{props.name}</span>
          <State of={state} />
          <span class="dim">
            {amountOf(attempts.length, "attempt")}
            {last !== undefined && `, ${last.status ?? "no response"}`}
          </span>
          <span class="dim">{last !== undefined && <Time iso={last.at} />}</span>
        </summary>
        {due_at !== null && (
          <p>
            Next attempt: <Time iso={due_at} />
          </p>
        )}
        <Attempts of={attempts} />
        {props.children}
      </details>
    </li>
  )
}
