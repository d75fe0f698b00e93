/** A project's members. */

import type { TargetedSubmitEvent } from "preact"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { go, to } from "../lib/route.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { DateField, ReasonField, TextField, requiredDateOf } from "../parts/fields.tsx"
import { Paged, useLoad, usePages } from "../parts/load.tsx"
import { ProjectScreen, Table } from "../parts/screen.tsx"
import { Ago, Facts, State, Time, amountOf } from "../parts/text.tsx"
import { BulkExtensions, ExtendAllBy } from "./bulk-extensions.tsx"

const states = ["active", "expired"] as const

interface Props {
  readonly project: string
}

const Grant = ({ project }: Props) => {
  let user = ""
  return (
    <Action
      label="Grant a membership"
      title="Grant a membership"
      confirm="Grant"
      run={async (fields) => {
        user = textOf(fields, "user")
        await api.memberships.grant({
          project_id: project,
          user_id: user,
          end_date: requiredDateOf(fields, "end"),
          reason: givenOf(fields, "reason"),
        })
        return { message: `${user} is a member.` }
      }}
      onDone={() => go("projects", project, "members", user)}
    >
      <TextField label="User" name="user" required maxLength={255} />
      <DateField label="End" name="end" />
      <ReasonField />
    </Action>
  )
}

const ExtendAll = ({ project, onDone }: Props & { readonly onDone: () => void }) => {
  const extend = (fields: FormData, isDry: boolean) =>
    api.memberships.extendAll({
      project_id: project,
      extend: requiredDateOf(fields, "end"),
      reason: givenOf(fields, "reason"),
      ...(isDry && { dry_run: true }),
    })
  return (
    <Action
      label="Extend all"
      title={`Set the end of all memberships of ${project}`}
      confirm="Extend all"
      isDangerous
      mustCheck
      check={async (fields) => {
        const { data, total } = await extend(fields, true)
        const shorter = (data.would_shorten ?? 0).toLocaleString("en")
        return `${amountOf(total, "membership")} would get this end. ${shorter} of them end later now, and would be shortened.`
      }}
      run={async (fields) => {
        const { total } = await extend(fields, false)
        return { message: `The new end was set: ${amountOf(total, "membership")}.` }
      }}
      onDone={onDone}
    >
      <DateField label="End" name="end" />
      <ReasonField />
    </Action>
  )
}

const Search = ({ project }: Props) => {
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const user = textOf(new FormData(event.currentTarget), "user")
    if (user !== "") go("projects", project, "members", user)
  }
  return (
    <form role="search" onSubmit={submit}>
      <input
        type="search"
        name="user"
        aria-label="Find a user by id"
        placeholder="Id of a user"
        spellcheck={false}
      />
      <button>Find</button>
    </form>
  )
}

/** The list with its filters. */
export const MembersScreen = ({ project }: Props) => {
  const [state, setState] = useState<(typeof states)[number] | undefined>()
  const facts = useLoad(
    async (signal) => (await api.projects.get({ project_id: project }, { signal })).data,
  )
  const members = usePages(
    (after, signal) => api.memberships.list({ project_id: project, after, state }, { signal }),
    state,
  )
  const mayExtendAll = useMay("client")
  const mayGrant = useMay("operator")
  const [changes, setChanges] = useState(0)
  const reload = () => {
    members.page.reload()
    facts.reload()
    setChanges((count) => count + 1)
  }
  return (
    <ProjectScreen
      project={project}
      tab="members"
      actions={
        <>
          {mayExtendAll && facts.value && <ExtendAll project={project} onDone={reload} />}
          {mayExtendAll && facts.value && <ExtendAllBy project={project} onDone={reload} />}
          {mayGrant && facts.value && <Grant project={project} />}
        </>
      }
    >
      {facts.value !== undefined && (
        <>
          <Facts
            of={[
              ["Memberships", facts.value.memberships.toLocaleString("en")],
              ["Last extended together to", <Time iso={facts.value.last_bulk_end_date} />],
            ]}
          />
          <div class="filters">
            <Search project={project} />
            <label>
              State{" "}
              <select
                value={state ?? ""}
                onChange={({ currentTarget: { value } }) =>
                  setState(states.find((one) => one === value))
                }
              >
                <option value="">all</option>
                {states.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
          </div>
        </>
      )}
      <Paged of={members}>
        {(data) => (
          <Table
            label="Members"
            columns={["User", "State", "End (UTC)", ""]}
            isEmpty={data.length === 0}
            empty={state === undefined ? "There are no members." : `No membership is ${state}.`}
          >
            {data.map(({ end_date, state: is, user_id }) => (
              <tr key={user_id}>
                <td>
                  <a href={to("projects", project, "members", user_id)}>{user_id}</a>
                </td>
                <td>
                  <State of={is} />
                </td>
                <td>
                  <Time iso={end_date} />
                </td>
                <td class="dim">
                  <Ago iso={end_date} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Paged>
      <BulkExtensions key={changes} project={project} onDone={reload} />
    </ProjectScreen>
  )
}
