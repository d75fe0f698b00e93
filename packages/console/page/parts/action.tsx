/** A button with a confirmation dialog. */

import { type ComponentChildren, type TargetedSubmitEvent, createContext } from "preact"
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { Problem } from "./load.tsx"

/** Shows the user a message. */
export const Announce = createContext<(message: string) => void>(() => {})

/** An action's result: a sentence, and a value shown only once, such as a token. */
interface Done {
  readonly message: string
  readonly shownOnce?: string
}

type Run<A> = (fields: FormData) => Promise<A>

interface Props {
  /** The button's text. */
  readonly label: string
  /** The dialog's question. */
  readonly title: string
  /** The confirm button's text; by default, `label`. */
  readonly confirm?: string
  readonly isDangerous?: boolean
  /** The form fields. */
  readonly children?: ComponentChildren
  /** Tries the action without effect, and describes the result. */
  readonly check?: Run<ComponentChildren>
  /** Whether it has to be tried out before. */
  readonly mustCheck?: boolean
  readonly run: Run<Done>
  /** Called after the dialog is closed, if it was done. */
  readonly onDone: () => void
}

/** The form's state. */
type Step =
  | { readonly _tag: "Asked" }
  | { readonly _tag: "Busy" }
  | { readonly _tag: "Checked"; readonly found: ComponentChildren }
  | { readonly _tag: "Refused"; readonly error: unknown }
  | { readonly _tag: "Done"; readonly done: Done }

const asked: Step = { _tag: "Asked" }

const Form = (props: Props & { readonly close: () => void }) => {
  const { check, close, confirm, isDangerous, label, mustCheck, onDone, run, title } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const announce = useContext(Announce)
  const [step, setStep] = useState<Step>(asked)
  useEffect(() => dialog.current?.showModal(), [])

  const isDone = step._tag === "Done"
  const end = () => {
    close()
    if (isDone) onDone()
  }

  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const isCheck = event.submitter?.getAttribute("value") === "check"
    setStep({ _tag: "Busy" })
    try {
      if (isCheck && check !== undefined) {
        return setStep({ _tag: "Checked", found: await check(fields) })
      }
      const done = await run(fields)
      announce(done.message)
      if (done.shownOnce !== undefined) return setStep({ _tag: "Done", done })
      close()
      onDone()
    } catch (error) {
      setStep({ _tag: "Refused", error })
    }
  }

  return (
    <dialog ref={dialog} onClose={end} aria-labelledby="asked">
      <form onSubmit={submit} onInput={() => setStep(asked)}>
        <h2 id="asked">{title}</h2>
        {step._tag === "Done" ? (
          <>
            <p>{step.done.message}</p>
            <p>
              <code class="once">{step.done.shownOnce}</code>
            </p>
          </>
        ) : (
          props.children
        )}
        {step._tag === "Checked" && (
          <p class="checked" role="status">
            {step.found}
          </p>
        )}
        {step._tag === "Refused" && <Problem error={step.error} />}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {isDone ? "Close" : "Cancel"}
          </button>
          {!isDone && check !== undefined && (
            <button value="check" disabled={step._tag === "Busy"}>
              Dry run
            </button>
          )}
          {!isDone && (
            <button
              class={isDangerous === true ? "danger" : "main"}
              disabled={step._tag === "Busy" || (mustCheck === true && step._tag !== "Checked")}
            >
              {confirm ?? label}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}

/** A button to open a dialog. Confirming the dialog runs the action. */
export const Action = (
  props: Props & { readonly isSmall?: boolean; readonly isMain?: boolean },
) => {
  const [isOpen, setOpen] = useState(false)
  const kind = props.isMain === true ? "main" : undefined
  return (
    <>
      <button
        type="button"
        class={props.isSmall === true ? "small" : kind}
        onClick={() => setOpen(true)}
      >
        {props.label}
      </button>
      {isOpen && <Form {...props} close={() => setOpen(false)} />}
    </>
  )
}

/** Returns a field's text without surrounding spaces. */
export const textOf = (fields: FormData, name: string): string => {
  const value = fields.get(name)
  return typeof value === "string" ? value.trim() : ""
}

/** Returns a field's text, or `undefined` if it is empty. */
export const givenOf = (fields: FormData, name: string): string | undefined =>
  textOf(fields, name) || undefined
