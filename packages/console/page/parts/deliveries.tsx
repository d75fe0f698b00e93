/** Deliveries to webhooks and their attempts. */

import type { AnsweredAttempt, Attempt, Delivery, ShownDelivery } from "@tenure/client"
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { now } from "../lib/clock.ts"
import { useSees } from "../lib/identity.ts"
import { resultOf } from "./latest.tsx"
import { Fold, Table } from "./screen.tsx"
import { Hidden } from "./sensitive.tsx"
import { Ago, State, Time, durationOf } from "./text.tsx"

/** Describes a delivery's state. A failed one is not attempted any more. */
export const wordOf = (state: Delivery["state"]): string =>
  state === "failed" ? "given up" : state

const hasFailed = (attempt: Attempt | undefined): boolean =>
  attempt !== undefined && attempt.error !== null

const Attempts = ({ of }: { readonly of: ReadonlyArray<Attempt> }) =>
  of.length === 0 ? (
    <p class="dim">No attempt has been made yet.</p>
  ) : (
    <table class="attempts">
      <thead>
        <tr>
          <th scope="col">Attempt (UTC)</th>
          <th scope="col" class="number">
            Took
          </th>
          <th scope="col">Result</th>
        </tr>
      </thead>
      <tbody>
        {of.toReversed().map((attempt, index) => (
          <tr key={`${attempt.at} ${index}`}>
            <td>
              <Time iso={attempt.at} isExact />
            </td>
            <td class="number">{durationOf(attempt.duration_ms)}</td>
            <td class={hasFailed(attempt) ? "bad" : "good"}>{resultOf(attempt)}</td>
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
        Response to the attempt of <Time iso={at} isExact />: {status}
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

/** A delivery in a list. */
export interface DeliveryItem {
  readonly delivery: Pick<Delivery, "attempts" | "due_at" | "state">
  readonly of: {
    readonly project_id: string
    readonly webhook_id: string
    readonly event_id: string
  }
  /** Its event, or its webhook. */
  readonly name: ComponentChildren
  readonly member?: ComponentChildren
  /** Its buttons. */
  readonly actions: ComponentChildren
}

const Details = ({ actions, delivery, of }: DeliveryItem) => {
  const maySee = useSees("operator")
  return (
    <>
      {delivery.due_at !== null && (
        <p>
          Next attempt: <Time iso={delivery.due_at} isExact /> UTC,{" "}
          {Date.parse(delivery.due_at) > now() ? <Ago iso={delivery.due_at} /> : "due now"}
        </p>
      )}
      <Attempts of={delivery.attempts} />
      {maySee && (
        <Hidden
          what="request and responses"
          load={async (signal) => (await api.webhooks.delivery(of, { signal })).data}
        >
          {(shown) => <Exchange {...shown} />}
        </Hidden>
      )}
      <div class="buttons">{actions}</div>
    </>
  )
}

const Row = (props: DeliveryItem & { readonly isOpenFirst: boolean; readonly columns: number }) => {
  const { columns, delivery, isOpenFirst, member, name } = props
  const [isOpen, setOpen] = useState(isOpenFirst)
  const last = delivery.attempts.at(-1)
  const fold = () => setOpen(!isOpen)
  return (
    <>
      <tr>
        <td class="long">
          <Fold isOpen={isOpen} label="Attempts" onClick={fold} />
          {name}
        </td>
        <td>
          <State of={wordOf(delivery.state)} />
        </td>
        <td>{last === undefined ? <span class="dim">–</span> : <Time iso={last.at} isExact />}</td>
        {member !== undefined && <td class="long spare">{member}</td>}
        <td class={hasFailed(last) ? "bad" : undefined}>
          {last === undefined ? "" : resultOf(last)}
        </td>
        <td class="number spare">{last === undefined ? "" : durationOf(last.duration_ms)}</td>
        <td class="number spare">{delivery.attempts.length}</td>
      </tr>
      {isOpen && (
        <tr class="more">
          <td colSpan={columns}>
            <Details {...props} />
          </td>
        </tr>
      )}
    </>
  )
}

/** Deliveries, folded up but for the first failure. */
export const Deliveries = (props: {
  /** The heading above the names. */
  readonly what: string
  readonly items: ReadonlyArray<DeliveryItem>
}) => {
  const { items, what } = props
  const hasMembers = items.some(({ member }) => member !== undefined)
  const failure = items.findIndex(({ delivery }) => hasFailed(delivery.attempts.at(-1)))
  const columns = [
    what,
    "State",
    "Last attempt (UTC)",
    ...(hasMembers ? ["Member"] : []),
    "Result",
    { name: "Took", isNumber: true },
    { name: "Attempts", isNumber: true },
  ]
  return (
    <Table label="Deliveries" columns={columns}>
      {items.map((item, index) => (
        <Row
          key={`${item.of.event_id} ${item.of.webhook_id}`}
          {...item}
          isOpenFirst={index === failure}
          columns={columns.length}
        />
      ))}
    </Table>
  )
}
