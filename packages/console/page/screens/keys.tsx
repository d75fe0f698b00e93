/** The API keys. */

import type { ApiKey } from "@tenure/client"
import { useContext } from "preact/hooks"
import { api } from "../lib/api.ts"
import { now } from "../lib/clock.ts"
import { Who, useMay } from "../lib/identity.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { DateField, Field, TextField, dateOf } from "../parts/fields.tsx"
import { Paged, usePages } from "../parts/load.tsx"
import { Screen, ShortId, Table } from "../parts/screen.tsx"
import { State, Time } from "../parts/text.tsx"

const roles = ["client", "operator", "admin"] as const

const isRole = (given: string): given is ApiKey["role"] => roles.some((role) => role === given)

const roleOf = (fields: FormData): ApiKey["role"] => {
  const given = textOf(fields, "role")
  return isRole(given) ? given : "client"
}

const projectsOf = (fields: FormData): ApiKey["projects"] => {
  const ids = textOf(fields, "projects")
    .split(",")
    .map((id) => id.trim())
    .filter(Boolean)
  return ids.length === 0 ? "all" : ids
}

/** Describes a key's state in a word. */
const stateOf = ({ expires_at, revoked_at }: ApiKey): string => {
  if (revoked_at !== null) return "revoked"
  return expires_at !== null && Date.parse(expires_at) <= now() ? "expired" : "active"
}

const Issue = ({ onDone }: { readonly onDone: () => void }) => {
  const { projects } = useContext(Who)
  return (
    <Action
      label="Issue a key"
      isMain
      title="Issue an API key"
      confirm="Issue"
      run={async (fields) => {
        const { data } = await api.apiKeys.issue({
          projects: projectsOf(fields),
          role: roleOf(fields),
          name: givenOf(fields, "name"),
          expires_at: dateOf(fields, "expires"),
        })
        return {
          message: "The key was issued. This is its token, which is not shown again.",
          ...(data.token !== null && { shownOnce: data.token }),
        }
      }}
      onDone={onDone}
    >
      <TextField label="Name" hint="optional" name="name" maxLength={255} />
      <Field label="Role">
        <select name="role">
          {roles.map((role) => (
            <option key={role}>{role}</option>
          ))}
        </select>
      </Field>
      <TextField
        label="Projects"
        hint={
          projects === "all" ? "ids separated by commas; all without" : "ids separated by commas"
        }
        name="projects"
        required={projects !== "all"}
      />
      <DateField label="Expires" name="expires" isOptional />
    </Action>
  )
}

const Revoke = ({ of, onDone }: { readonly of: ApiKey; readonly onDone: () => void }) => (
  <Action
    label="Revoke"
    isSmall
    isDangerous
    title={`Revoke the key ${of.name ?? of.id}?`}
    run={async () => {
      await api.apiKeys.revoke({ key_id: of.id })
      return { message: "The key was revoked." }
    }}
    onDone={onDone}
  >
    <p>Whoever uses it is refused from now on. Nothing brings it back.</p>
  </Action>
)

const Row = ({ of, onDone }: { readonly of: ApiKey; readonly onDone: () => void }) => {
  const mayRevoke = useMay("admin")
  const isOwn = useContext(Who).key_id === of.id
  return (
    <tr>
      <td class="long">
        {of.name ?? <span class="dim">unnamed</span>}
        {isOwn && <span class="dim"> (yours)</span>}
      </td>
      <td>
        <State of={stateOf(of)} />
      </td>
      <td>{of.role}</td>
      <td>
        <Time iso={of.last_used_at} />
      </td>
      <td class="long">{of.projects === "all" ? "all" : of.projects.join(", ")}</td>
      <td class="spare">
        <ShortId id={of.id} />
      </td>
      <td class="spare">
        <Time iso={of.created_at} />
      </td>
      <td class="spare">
        <Time iso={of.revoked_at ?? of.expires_at} />
      </td>
      <td class="actions">
        {mayRevoke && of.revoked_at === null && <Revoke of={of} onDone={onDone} />}
      </td>
    </tr>
  )
}

/** The API keys. */
export const KeysScreen = () => {
  const keys = usePages((after, signal) => api.apiKeys.list({ after }, { signal }))
  const mayIssue = useMay("admin")
  return (
    <Screen title="API keys" actions={mayIssue && <Issue onDone={keys.page.reload} />}>
      <Paged of={keys}>
        {(data) => (
          <Table
            label="API keys"
            columns={[
              "Name",
              "State",
              "Role",
              "Last used (UTC)",
              "Projects",
              "Id",
              "Created (UTC)",
              "Ends (UTC)",
              "",
            ]}
          >
            {data.map((key) => (
              <Row key={key.id} of={key} onDone={keys.page.reload} />
            ))}
          </Table>
        )}
      </Paged>
    </Screen>
  )
}
