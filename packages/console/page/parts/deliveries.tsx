/** Deliveries to webhooks and their attempts. */

import type { AnsweredAttempt, Attempt, Delivery, ShownDelivery } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { api } from "../lib/api.ts"
import { useSees } from "../lib/identity.ts"
import { Hidden } from "./sensitive.tsx"
import { State, Time, amountOf, durationOf } from "./text.tsx"

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

/** Prints a header field. */
const headerOf = ([name, value]: readonly [string, string | null]): string =>
  `${name}: ${value ?? "(new for each attempt)"}`

const Response = ({ at, response_body, status }: AnsweredAttempt) =>
  response_body === null ? null : (
    <>
      <h3>
        Response to the attempt of <Time iso={at} />: {status}
      </h3>
      {response_body === "" ? (
        <p class="dim">It had no body.</p>
      ) : (
        <pre tabIndex={0}>{response_body}</pre>
      )}
    </>
  )

const Exchange = ({ attempts, request }: ShownDelivery) => (
  <div>
    <h3>Request</h3>
    <pre tabIndex={0}>
      {[
        `${request.method} ${request.url}`,
        ...Object.entries(request.headers).map(headerOf),
        "",
        request.body,
      ].join("\n")}
    </pre>
    {attempts.map((attempt, index) => (
      <Response key={`${attempt.at} ${index}`} {...attempt} />
    ))}
  </div>
)

/** A delivery, unfolding to its attempts. */
export const DeliveryRow = (props: {
  readonly delivery: Pick<Delivery, "attempts" | "due_at" | "state">
  /** The row's name. */
  readonly name: ComponentChildren
  readonly of: {
    readonly project_id: string
    readonly webhook_id: string
    readonly event_id: string
  }
  /** Contents after the attempts. */
  readonly children?: ComponentChildren
}) => {
  const { of } = props
  const { attempts, due_at, state } = props.delivery
  const maySee = useSees("operator")
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
        {maySee && (
          <Hidden
            what="request and responses"
            load={async (signal) => (await api.webhooks.delivery(of, { signal })).data}
          >
            {(shown) => <Exchange {...shown} />}
          </Hidden>
        )}
        {props.children}
      </details>
    </li>
  )
}
