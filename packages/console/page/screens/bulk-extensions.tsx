/** A project's bulk extensions: making, listing and undoing them. */

import type { BulkExtended, BulkExtensionRecord } from "@tenure/client"
import { api } from "../lib/api.ts"
import { useMay } from "../lib/identity.ts"
import { previewOf } from "../lib/webhooks.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { EndFields, ReasonField, TextField, extensionIn, waysTo } from "../parts/fields.tsx"
import { Paged, usePages } from "../parts/load.tsx"
import { Table } from "../parts/screen.tsx"
import { Announced, Loss, Time, amountOf, lifetimesOf } from "../parts/text.tsx"

interface Props {
  readonly project: string
  readonly onDone: () => void
}

/** Describes a dry run's result. */
const effectOf = (total: number, found: BulkExtended) => (
  <>
    Of {amountOf(total, "membership")}, <Loss of={found.would_shorten ?? 0} /> would end earlier
    than now, and {(found.would_reactivate ?? 0).toLocaleString("en")} would be active again.
    {lifetimesOf(found.would_end_lifetime)}
    <Announced of={found.announcements} />
    {previewOf(found.events)}
  </>
)

/** Sets all memberships' end dates. */
export const ExtendAll = ({ onDone, project, zone }: Props & { readonly zone: string }) => {
  const extend = (fields: FormData, isDry: boolean) =>
    api.memberships.extendAll({
      project_id: project,
      ...extensionIn(fields),
      reason: givenOf(fields, "reason"),
      ...(isDry && { dry_run: true, events: true }),
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
        return effectOf(total, data)
      }}
      run={async (fields) => {
        const { total } = await extend(fields, false)
        return { message: `The new end was set: ${amountOf(total, "membership")}.` }
      }}
      onDone={onDone}
    >
      <EndFields ways={waysTo.set} zone={zone} />
      <ReasonField />
    </Action>
  )
}

/** Ends all memberships later by a duration. */
export const ExtendAllBy = ({ onDone, project }: Props) => {
  const extend = (fields: FormData, isDry: boolean) =>
    api.memberships.extendAll(
      {
        project_id: project,
        extend_by: textOf(fields, "by").toUpperCase(),
        reason: givenOf(fields, "reason"),
        ...(isDry && { dry_run: true, events: true }),
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
        return { message: `Added to ${amountOf(total, "membership")}.` }
      }}
      onDone={onDone}
    >
      <TextField
        label="Duration"
        name="by"
        hint="P3D for three days of 24 hours, PT36H for 36 hours"
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
        {(data) =>
          data.length === 0 ? (
            <p class="dim">Nothing was done to all members yet.</p>
          ) : (
            <Table
              label="Done to all members"
              columns={["What", "When (UTC)", { name: "Members", isNumber: true }, "Reason", ""]}
            >
              {data.map((one) => (
                <tr key={one.id}>
                  <td>
                    <What {...one} />
                  </td>
                  <td>
                    <Time iso={one.at} />
                  </td>
                  <td class="number">{one.total.toLocaleString("en")}</td>
                  <td class="long">{one.reason}</td>
                  <td class="actions">
                    {one.undone_at !== null && "undone"}
                    {one.undone_at === null && mayUndo && (
                      <Undo id={one.id} project={project} onDone={reload} />
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Paged>
    </section>
  )
}
