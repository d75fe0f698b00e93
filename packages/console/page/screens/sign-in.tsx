/** Signing in with an API key. */

import type { TargetedSubmitEvent } from "preact"
import { useState } from "preact/hooks"
import { signIn } from "../lib/api.ts"
import { textOf } from "../parts/action.tsx"
import { TextField } from "../parts/fields.tsx"
import { Problem } from "../parts/load.tsx"
import { Copy, Screen } from "../parts/screen.tsx"

const line = "npx tenure keys issue --all-projects --role operator --name console"

/** Asks for an API key. */
export const SignInScreen = ({ onDone }: { readonly onDone: () => void }) => {
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    setBusy(true)
    try {
      await signIn(textOf(new FormData(event.currentTarget), "token"))
      onDone()
    } catch (fault) {
      setError(fault)
    }
    setBusy(false)
  }
  return (
    <div class="card">
      <Screen title="Sign in to Tenure">
        <form onSubmit={submit} onInput={() => setError(undefined)}>
          <TextField label="API key" name="token" type="password" required autofocus />
          {error !== undefined && <Problem error={error} />}
          <button class="main" disabled={isBusy}>
            Sign in
          </button>
        </form>
        <p class="dim">
          The key of an operator or an admin. The session ends with the browser’s. To get a key, ask
          an admin, or run
        </p>
        <span class="id">
          <code>{line}</code>
          <Copy text={line} what="the line" />
        </span>
      </Screen>
    </div>
  )
}
