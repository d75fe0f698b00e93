/** Signing in with an API key. */

import type { TargetedSubmitEvent } from "preact"
import { useState } from "preact/hooks"
import { signIn } from "../lib/api.ts"
import { textOf } from "../parts/action.tsx"
import { TextField } from "../parts/fields.tsx"
import { Problem } from "../parts/load.tsx"
import { Screen } from "../parts/screen.tsx"

/** Asks for an API key. */
export const SignInScreen = ({ onDone }: { readonly onDone: () => void }) => {
  const [error, setError] = useState<unknown>()
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    try {
      await signIn(textOf(new FormData(event.currentTarget), "token"))
      onDone()
    } catch (fault) {
      setError(fault)
    }
  }
  return (
    <Screen title="Sign in">
      <form class="narrow" onSubmit={submit} onInput={() => setError(undefined)}>
        <p>With the API key of an operator or an admin. The session ends with the browser's.</p>
        <TextField label="API key" name="token" type="password" required autofocus />
        {error !== undefined && <Problem error={error} />}
        <button class="main">Sign in</button>
      </form>
    </Screen>
  )
}
