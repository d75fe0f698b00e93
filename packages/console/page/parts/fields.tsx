/** Form fields. */

import type { WebhookHealth } from "@tenure/client"
import type { ComponentChildren, InputHTMLAttributes } from "preact"
import { useRef, useState } from "preact/hooks"
import { dayIn, now } from "../lib/clock.ts"
import { givenOf, textOf } from "./action.tsx"
import { Ago, dayText, utcOf } from "./text.tsx"

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
  <div class="search">
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

const midnight = "00:00:00"

const timeName = (name: string): string => `${name}-time`

/** Parses typed text; `undefined` if it is no date. */
const typedDate = (day: string, time: string): string | undefined => {
  const date = new Date(`${day}T${time || midnight}Z`)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}

/**
 * A date in UTC, with its time on demand, or a day in a time zone, and buttons to lengthen it. It explains the date while
 * the user types.
 *
 * @param from - the present date, in ISO text, whose time is the first choice; by default, midnight
 */
export const DateField = (props: {
  readonly name: string
  readonly label: string
  readonly from?: string | undefined
  readonly isOptional?: boolean
  /** The time zone; without it, the date has a time. */
  readonly zone?: string
  /** Whether it has no buttons to lengthen it. */
  readonly isPlain?: boolean
  /** Whether the time is shown at once. */
  readonly isExact?: boolean
}) => {
  const { from, isOptional, isPlain, name, zone } = props
  const [day, setDay] = useState("")
  const [time, setTime] = useState(from?.slice(11, 19) ?? midnight)
  const [hasTime, setHasTime] = useState(props.isExact === true)
  const input = useRef<HTMLInputElement>(null)
  const lengthen = (months: number) => {
    if (input.current === null) return
    const next = monthsAfter(new Date(dayIn(zone ?? "UTC", now())), months)
    input.current.value = next.toISOString().slice(0, 10)
    input.current.dispatchEvent(new Event("input", { bubbles: true }))
  }
  const typed = typedDate(day, time)
  return (
    <>
      <Field label={props.label} hint={isOptional === true ? "UTC, optional" : (zone ?? "UTC")}>
        <input
          ref={input}
          type="date"
          name={name}
          max={zone === undefined ? "9999-12-31" : "9999-12-30"}
          value={day}
          required={isOptional !== true}
          autofocus={zone !== undefined}
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
        zone === undefined && <input type="hidden" name={timeName(name)} value={time} />
      )}
      <div class="steps">
        {(isPlain === true ? [] : presets).map(([label, months]) => (
          <button key={label} type="button" class="small" onClick={() => lengthen(months)}>
            {label}
          </button>
        ))}
        {!hasTime && zone === undefined && (
          <button type="button" class="small plain" onClick={() => setHasTime(true)}>
            Exact time
          </button>
        )}
      </div>
      <p class="turns-into dim" aria-live="polite">
        {typed !== undefined &&
          (zone === undefined ? (
            <>
              {utcOf(typed, true)} UTC, <Ago iso={typed} />
            </>
          ) : (
            `through ${dayText(day)}`
          ))}
      </p>
    </>
  )
}

/** Returns a field's date in the API's format; `undefined` if empty. */
export const dateOf = (fields: FormData, name: string): string | undefined => {
  const day = textOf(fields, name)
  return day === "" ? undefined : typedDate(day, textOf(fields, timeName(name)))
}

const ways = {
  day: "Day",
  P1M: "+1 month",
  P3M: "+3 months",
  P1Y: "+1 year",
  time: "Exact time",
  life: "For life",
  open: "Until resumed",
}

type Way = keyof typeof ways

const durationIn = (way: string) => (way.startsWith("P") ? way : undefined)

/** The ways to set an end, to lengthen it, to grant one, and to pause. */
export const waysTo = {
  set: ["day", "time"],
  extend: ["day", "P1M", "P3M", "P1Y", "time"],
  grant: ["day", "time", "life"],
  pause: ["day", "time", "open"],
} satisfies Record<string, ReadonlyArray<Way>>

/** A new end, in one of several ways. */
export const EndFields = (props: {
  /** What ends; by default, a membership. */
  readonly label?: string
  readonly ways: ReadonlyArray<Way>
  readonly zone: string
  /** The present end. */
  readonly from?: string
}) => {
  const { from, zone } = props
  const [way, setWay] = useState<Way>("day")
  return (
    <>
      <div class="steps" role="radiogroup" aria-label={props.label ?? "New end"}>
        {props.ways.map((one) => (
          <label key={one}>
            <input
              type="radio"
              name="way"
              value={one}
              checked={one === way}
              onChange={() => setWay(one)}
            />
            {ways[one]}
          </label>
        ))}
      </div>
      {way === "day" && (
        <DateField label="Last day" name="through" zone={zone} isPlain={from !== undefined} />
      )}
      {way === "time" && <DateField label="End" name="end" from={from} isPlain isExact />}
      {durationIn(way) && <p class="dim">By the calendar of {zone}.</p>}
    </>
  )
}

/** Returns the end to grant, whose date is `null` for life. */
export const grantIn = (fields: FormData) => ({
  through: givenOf(fields, "through"),
  end_date: textOf(fields, "way") === "life" ? null : dateOf(fields, "end"),
})

/** Returns the end to set. */
export const extensionIn = (fields: FormData) => ({
  through: givenOf(fields, "through"),
  extend_by: durationIn(textOf(fields, "way")),
  extend: dateOf(fields, "end"),
})
