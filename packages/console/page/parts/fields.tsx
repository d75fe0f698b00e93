/** Form fields. */

import type { ComponentChildren, InputHTMLAttributes } from "preact"
import { useRef } from "preact/hooks"
import { textOf } from "./action.tsx"

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

/** Why something is done. */
export const ReasonField = () => (
  <TextField
    name="reason"
    label="Reason"
    hint="optional; history and events keep it"
    maxLength={500}
  />
)

const steps = [
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

const localOf = (date: Date): string => date.toISOString().slice(0, 19)

/**
 * A date and time in UTC, with buttons to extend the current end date.
 *
 * @param from - the date to extend, in ISO text; by default, now
 */
export const DateField = (props: {
  readonly name: string
  readonly label: string
  readonly from?: string | undefined
  readonly isOptional?: boolean
}) => {
  const input = useRef<HTMLInputElement>(null)
  const lengthen = (months: number) => {
    if (input.current === null) return
    const from = props.from === undefined ? new Date() : new Date(props.from)
    input.current.value = localOf(monthsAfter(from, months))
    input.current.dispatchEvent(new Event("input", { bubbles: true }))
  }
  return (
    <>
      <Field label={props.label} hint={props.isOptional === true ? "UTC, optional" : "UTC"}>
        <input
          ref={input}
          type="datetime-local"
          step={1}
          name={props.name}
          required={props.isOptional !== true}
        />
      </Field>
      <div class="steps">
        {steps.map(([label, months]) => (
          <button key={label} type="button" class="small" onClick={() => lengthen(months)}>
            {label}
          </button>
        ))}
      </div>
    </>
  )
}

/** Returns a field's date in the API's format; `undefined` if empty. */
export const dateOf = (fields: FormData, name: string): string | undefined => {
  const text = textOf(fields, name)
  return text === "" ? undefined : new Date(`${text}Z`).toISOString()
}

/** Returns a required field's date. */
export const requiredDateOf = (fields: FormData, name: string): string => {
  const date = dateOf(fields, name)
  if (date === undefined) throw new Error("Choose a date.")
  return date
}
