/** Form fields. */

import type { WebhookHealth } from "@tenure/client"
import type { ComponentChildren, InputHTMLAttributes } from "preact"
import { useRef, useState } from "preact/hooks"
import { now } from "../lib/clock.ts"
import { textOf } from "./action.tsx"
import { utcOf } from "./text.tsx"

/** A field with its name. */
export const Field = (props: {
  readonly label: string
  readonly hint?: string
  readonly children: ComponentChildren
}) => (
  <label class="field">
    <span>
      {props.label}
      {props.hint !== undefined && <small> {props.hint}</small>}
    </span>
    {props.children}
  </label>
)

/** A text field. */
export const TextField = ({
  hint,
  label,
  ...input
}: { readonly label: string; readonly hint?: string } & InputHTMLAttributes<HTMLInputElement>) => (
  <Field label={label} {...(hint !== undefined && { hint })}>
    <input autocomplete="off" spellcheck={false} {...input} />
  </Field>
)

/** A webhook's fields, with their present values. */
export const WebhookFields = ({ of }: { readonly of?: WebhookHealth }) => (
  <>
    <TextField
      label="URL"
      name="url"
      type="url"
      required
      maxLength={2048}
      defaultValue={of?.url ?? ""}
    />
    <TextField
      label="Types of events"
      hint="separated by commas; all without"
      name="types"
      defaultValue={of?.event_types?.join(", ") ?? ""}
    />
    <TextField
      label="Description"
      hint="optional"
      name="description"
      maxLength={200}
      defaultValue={of?.description ?? ""}
    />
    <TextField
      label="Attempts a second"
      hint="leave empty for no limit"
      name="rate"
      type="number"
      min={1}
      max={10_000}
      defaultValue={of?.rate ?? ""}
    />
    <p>
      <label>
        <input type="checkbox" name="ordered" defaultChecked={of?.ordered ?? false} /> Send a
        member's events one by one
      </label>
    </p>
  </>
)

/** Returns the rate and the order from the form. */
export const limitsOf = (fields: FormData) => ({
  ordered: fields.has("ordered"),
  rate: Number(textOf(fields, "rate")) || null,
})

/** A field that filters a list while the user types. */
export const SearchField = (props: {
  readonly label: string
  readonly placeholder: string
  readonly value: string
  readonly onType: (value: string) => void
}) => (
  <div class="search" role="search">
    <input
      type="search"
      aria-label={props.label}
      placeholder={props.placeholder}
      spellcheck={false}
      value={props.value}
      onInput={({ currentTarget: { value } }) => props.onType(value)}
    />
  </div>
)

/** Why something is done. */
export const ReasonField = () => (
  <TextField
    name="reason"
    label="Reason"
    hint="optional; history and events keep it"
    maxLength={500}
  />
)

const presets = [
  ["+1 month", 1],
  ["+3 months", 3],
  ["+1 year", 12],
] as const

const monthsAfter = (from: Date, months: number): Date => {
  const to = new Date(from)
  to.setUTCMonth(to.getUTCMonth() + months)
  // If the month is shorter, use its last day.
  if (to.getUTCDate() !== from.getUTCDate()) to.setUTCDate(0)
  return to
}

const dayMillis = 86_400_000

const midnight = "00:00:00"

const timeName = (name: string): string => `${name}-time`

/** Describes how far a date is from another, such as `+31 days`. */
const distanceOf = (from: string, to: string): string => {
  const days = (Date.parse(to) - Date.parse(from)) / dayMillis
  const whole = Math.abs(days) >= 1 ? Math.round(days) : Math.round(days * 10) / 10
  return `${whole < 0 ? "−" : "+"}${Math.abs(whole).toLocaleString("en")} day${Math.abs(whole) === 1 ? "" : "s"}`
}

/** Parses typed text; `undefined` if it is no date. */
const typedDate = (day: string, time: string): string | undefined => {
  const date = new Date(`${day}T${time || midnight}Z`)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

const TurnsInto = ({ from, to }: { readonly from: string | undefined; readonly to: string }) => (
  <>
    {from !== undefined && `${utcOf(from, true)} → `}
    {utcOf(to, true)} UTC, {distanceOf(from ?? new Date(now()).toISOString(), to)}
    {from === undefined && " from now"}
  </>
)

/**
 * A date in UTC, with its time on demand, and buttons to extend the current end date. It explains the
 * date while the user types.
 *
 * @param from - the date to extend, in ISO text; by default, now
 */
export const DateField = (props: {
  readonly name: string
  readonly label: string
  readonly from?: string | undefined
  readonly isOptional?: boolean
  /** Whether the date is over, without anything to extend. */
  readonly isPast?: boolean
}) => {
  const { from, name } = props
  const [day, setDay] = useState("")
  const [time, setTime] = useState(from?.slice(11, 19) ?? midnight)
  const [hasTime, setHasTime] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const lengthen = (months: number) => {
    const next = monthsAfter(new Date(from ?? now()), months).toISOString()
    if (input.current === null) return
    if (from !== undefined) setTime(next.slice(11, 19))
    input.current.value = next.slice(0, 10)
    input.current.dispatchEvent(new Event("input", { bubbles: true }))
  }
  const typed = typedDate(day, time)
  return (
    <>
      <Field label={props.label} hint={props.isOptional === true ? "UTC, optional" : "UTC"}>
        <input
          ref={input}
          type="date"
          name={name}
          max="9999-12-31"
          value={day}
          required={props.isOptional !== true}
          onInput={({ currentTarget: { value } }) => setDay(value)}
        />
      </Field>
      {hasTime ? (
        <Field label="Time" hint="UTC">
          <input
            type="time"
            step={1}
            name={timeName(name)}
            value={time}
            onInput={({ currentTarget: { value } }) => setTime(value)}
          />
        </Field>
      ) : (
        <input type="hidden" name={timeName(name)} value={time} />
      )}
      <div class="steps">
        {(props.isPast === true ? [] : presets).map(([label, months]) => (
          <button key={label} type="button" class="small" onClick={() => lengthen(months)}>
            {label}
          </button>
        ))}
        {!hasTime && (
          <button type="button" class="small plain" onClick={() => setHasTime(true)}>
            Exact time
          </button>
        )}
      </div>
      <p class="turns-into dim" aria-live="polite">
        {typed !== undefined && <TurnsInto from={from} to={typed} />}
      </p>
    </>
  )
}

/** Returns a field's date in the API's format; `undefined` if empty. */
export const dateOf = (fields: FormData, name: string): string | undefined => {
  const day = textOf(fields, name)
  return day === "" ? undefined : typedDate(day, textOf(fields, timeName(name)))
}

/** A membership's end: a date as above, or for life. */
export const EndField = () => {
  const [isForLife, setForLife] = useState(false)
  return (
    <>
      {!isForLife && <DateField label="End" name="end" />}
      <p>
        <label>
          <input type="checkbox" name="life" onInput={() => setForLife(!isForLife)} /> For life
        </label>
      </p>
    </>
  )
}

/** Returns a membership's end; `null` for life. */
export const endIn = (fields: FormData): string | null =>
  fields.has("life") ? null : requiredDateOf(fields, "end")

/** Returns a required field's date. */
export const requiredDateOf = (fields: FormData, name: string): string => {
  const date = dateOf(fields, name)
  if (date === undefined) throw new Error("Choose a date.")
  return date
}
