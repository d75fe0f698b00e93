/** What was done to all members of a project: a duration for everybody, the list, and undoing. */

import type { BulkExtensionRecord } from "@tenure/client"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { ReasonField, TextField } from "../parts/fields.tsx"
import { Paged, usePages } from "../parts/load.tsx"
import { Table } from "../parts/screen.tsx"
import { Time, amountOf } from "../parts/text.tsx"

interface Props {
  readonly project: string
  readonly onDone: () => void
}

/** What a dry run has found, in sentences. */
const effectOf = (
  total: number,
  found: { readonly would_shorten?: number; readonly would_reactivate?: number },
): string => {
  const { would_reactivate = 0, would_shorten = 0 } = found
  return `Of ${amountOf(total, "membership")}, ${would_shorten.toLocaleString("en")} would end earlier than now, and ${would_reactivate.toLocaleString("en")} would be active again.`
}

/** Ends all memberships later by a duration. */
export const ExtendAllBy = ({ onDone, project }: Props) => {
  const extend = (fields: FormData, isDry: boolean) =>
    api.memberships.extendAll(
      {
        project_id: project,
        extend_by: textOf(fields, "by").toUpperCase(),
        reason: givenOf(fields, "reason"),
        ...(isDry && { dry_run: true }),
      },
      { idempotencyKey: crypto.randomUUID() },
    )
  return (
    <Action
      label="Add days"
      title={`Let all memberships of ${project} end later`}
      confirm="Add to all"
      isDangerous
      mustCheck
      check={async (fields) => {
        const { data, total } = await extend(fields, true)
        return effectOf(total, data)
      }}
      run={async (fields) => {
        const { total } = await extend(fields, false)
        return { message: `It was added: ${amountOf(total, "membership")}.` }
      }}
      onDone={onDone}
    >
      <TextField
        label="Duration"
        name="by"
        hint="P3D for three days, PT36H for 36 hours"
        required
        maxLength={64}
      />
      <ReasonField />
    </Action>
  )
}

const Undo = ({ id, onDone, project }: Props & { readonly id: string }) => {
  const undo = (fields: FormData, isDry: boolean) =>
    api.memberships.undoBulkExtension({
      project_id: project,
      bulk_extension_id: id,
      reason: givenOf(fields, "reason"),
      ...(isDry && { dry_run: true }),
    })
  return (
    <Action
      label="Undo"
      title="Undo this for all members? What was set for single members since then stays."
      confirm="Undo it"
      isDangerous
      mustCheck
      isSmall
      check={async (fields) => {
        const { data, total } = await undo(fields, true)
        return effectOf(total, data)
      }}
      run={async (fields) => {
        const { total } = await undo(fields, false)
        return { message: `It was undone: ${amountOf(total, "membership")}.` }
      }}
      onDone={onDone}
    >
      <ReasonField />
    </Action>
  )
}

const What = ({ end_date, extend_by, mode }: BulkExtensionRecord) => (
  <>
    {mode === "never_shorten" ? "at least until " : ""}
    {mode === "set" ? "until " : ""}
    {end_date === null ? `later by ${extend_by}` : <Time iso={end_date} />}
  </>
)

/** The list, newest first. */
export const BulkExtensions = ({ onDone, project }: Props) => {
  const made = usePages((after, signal) =>
    api.memberships.bulkExtensions({ project_id: project, after, limit: 10 }, { signal }),
  )
  const mayUndo = useMay("operator")
  const reload = () => {
    made.page.reload()
    onDone()
  }
  return (
    <section>
      <h2>Done to all members</h2>
      <Paged of={made}>
        {(data) => (
          <Table
            label="Done to all members"
            columns={["When (UTC)", "What", "Members", "Reason", ""]}
            isEmpty={data.length === 0}
            empty="Nothing was done to all members yet."
          >
            {data.map((one) => (
              <tr key={one.id}>
                <td>
                  <Time iso={one.at} />
                </td>
                <td>
                  <What {...one} />
                </td>
                <td>{one.total.toLocaleString("en")}</td>
                <td>{one.reason}</td>
                <td>
                  {one.undone_at !== null && "undone"}
                  {one.undone_at === null && mayUndo && (
                    <Undo id={one.id} project={project} onDone={reload} />
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Paged>
    </section>
  )
}
