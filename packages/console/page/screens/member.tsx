/** One member: until when, why, and how it came about. */

import { type Membership, type MembershipChange, isTenureError } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { useMay, useSees } from "../lib/identity.ts"
import { Action, givenOf } from "../parts/action.tsx"
import { Author, Dates, deeds } from "../parts/audit.tsx"
import { DateField, ReasonField, requiredDateOf } from "../parts/fields.tsx"
import { Loaded, Paged, useLoad, usePages } from "../parts/load.tsx"
import { ProjectScreen } from "../parts/screen.tsx"
import { Ago, Facts, State, Time } from "../parts/text.tsx"

interface Member {
  readonly project_id: string
  readonly user_id: string
}

interface Props {
  readonly member: Member
  readonly onDone: () => void
}

/** Extends the end date on screen: refused if somebody else has changed it meanwhile. */
const Extend = (props: Props & { readonly end: string }) => {
  const extend = (fields: FormData, isDry: boolean) =>
    api.memberships.extend({
      ...props.member,
      extend: requiredDateOf(fields, "end"),
      reason: givenOf(fields, "reason"),
      expected_end_date: props.end,
      ...(isDry && { dry_run: true }),
    })
  return (
    <Action
      label="Extend"
      title={`Extend the membership of ${props.member.user_id}`}
      confirm="Extend"
      check={async (fields) => {
        const { data } = await extend(fields, true)
        return `It would end ${data.new_end_date}, in place of ${props.end}.`
      }}
      run={async (fields) => {
        const { data } = await extend(fields, false)
        return { message: `The membership ends ${data.new_end_date}.` }
      }}
      onDone={props.onDone}
    >
      <p>
        It ends <Time iso={props.end} /> now.
      </p>
      <DateField label="New end" name="end" from={props.end} />
      <ReasonField />
    </Action>
  )
}

const Grant = (props: Props & { readonly label: string }) => (
  <Action
    label={props.label}
    title={`${props.label}: ${props.member.user_id}`}
    confirm={props.label}
    run={async (fields) => {
      const { data } = await api.memberships.grant({
        ...props.member,
        end_date: requiredDateOf(fields, "end"),
        reason: givenOf(fields, "reason"),
      })
      return { message: `The membership ends ${data.end_date}.` }
    }}
    onDone={props.onDone}
  >
    <DateField label="End" name="end" />
    <ReasonField />
  </Action>
)

const End = ({ member, onDone }: Props) => (
  <Action
    label="End"
    title={`End the membership of ${member.user_id}?`}
    confirm="End the membership"
    isDangerous
    run={async () => {
      await api.memberships.end(member)
      return { message: `${member.user_id} is not a member any more.` }
    }}
    onDone={onDone}
  >
    <p>The membership is removed at once. Its history stays, and it can be granted again.</p>
  </Action>
)

const Change = ({ change }: { readonly change: MembershipChange }) => {
  const { action, at, reason, request_id } = change
  return (
    <li>
      <p>
        <strong>{deeds[action]}</strong> <Time iso={at} />{" "}
        <span class="dim">
          <Ago iso={at} />
        </span>
      </p>
      <p>
        <Dates of={change} />
      </p>
      {reason !== null && <blockquote>{reason}</blockquote>}
      <p class="dim">
        by <Author of={change} />
        {request_id !== null && (
          <>
            , request <code>{request_id}</code>
          </>
        )}
      </p>
    </li>
  )
}

/** Whether the trail goes back to when the user became a member. */
const hasBeginning = (oldest: MembershipChange): boolean =>
  (oldest.action === "granted" || oldest.action === "imported") && oldest.from === null

/**
 * Explains gaps before the last page's oldest change. Stores keep a trail for a time, or a number of
 * rows.
 */
const missingBefore = (oldest: MembershipChange | undefined, isMember: boolean): string | null => {
  if (oldest !== undefined)
    return hasBeginning(oldest) ? null : "Earlier changes are not kept any more."
  return isMember
    ? "The changes of this membership are not kept any more: the audit trail keeps the newest of the project."
    : "No change of this membership is kept."
}

const History = (props: {
  readonly member: Member
  readonly isMember: boolean
  readonly turn: string
}) => {
  const { isMember, member, turn } = props
  const history = usePages(
    (after, signal) => api.memberships.history({ ...member, after, limit: 50 }, { signal }),
    turn,
  )
  return (
    <>
      <h2>History</h2>
      <Paged of={history}>
        {(data) => (
          <>
            <ol class="timeline">
              {data.map((change, index) => (
                <Change key={`${change.at} ${index}`} change={change} />
              ))}
            </ol>
            {history.forth === undefined && (
              <p class="dim">{missingBefore(data.at(-1), isMember)}</p>
            )}
          </>
        )}
      </Paged>
    </>
  )
}

/** Finds a membership; `null` for somebody without one. */
const find = async (member: Member, signal: AbortSignal): Promise<Membership | null> => {
  try {
    return (await api.memberships.get(member, { signal })).data
  } catch (error) {
    if (isTenureError(error, "MEMBERSHIP_NOT_FOUND")) return null
    throw error
  }
}

/** A member. */
export const MemberScreen = ({
  project,
  user,
}: {
  readonly project: string
  readonly user: string
}) => {
  const member = { project_id: project, user_id: user }
  const found = useLoad((signal) => find(member, signal))
  const mayExtend = useMay("client")
  const mayChange = useMay("operator")
  const maySee = useSees("operator")
  const [changes, setChanges] = useState(0)
  const { value } = found
  const onDone = () => {
    found.reload()
    setChanges((before) => before + 1)
  }
  return (
    <ProjectScreen
      project={project}
      tab="members"
      title={user}
      actions={
        <>
          {mayExtend && value && <Extend member={member} end={value.end_date} onDone={onDone} />}
          {mayChange && value !== undefined && (
            <Grant
              member={member}
              label={value === null ? "Grant" : "Set the end"}
              onDone={onDone}
            />
          )}
          {mayChange && value && <End member={member} onDone={onDone} />}
        </>
      }
    >
      <Loaded from={found}>
        {(membership) => (
          <>
            <Facts
              of={
                membership === null
                  ? [["State", "no member"]]
                  : [
                      ["State", <State of={membership.state} />],
                      [
                        "End (UTC)",
                        <>
                          <Time iso={membership.end_date} />{" "}
                          <span class="dim">
                            <Ago iso={membership.end_date} />
                          </span>
                        </>,
                      ],
                      ...Object.entries(membership.metadata).map(
                        ([name, text]) => [name, text] as const,
                      ),
                    ]
              }
            />
            {maySee && (
              <History member={member} isMember={membership !== null} turn={String(changes)} />
            )}
          </>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
