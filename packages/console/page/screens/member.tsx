/** One member: until when, why, and how it came about. */

import { type Membership, type MembershipChange, isTenureError } from "@tenure/client"
import { useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { dayIn } from "../lib/clock.ts"
import { useMay, useSees } from "../lib/identity.ts"
import { previewOf } from "../lib/webhooks.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { Author, Dates, deeds } from "../parts/audit.tsx"
import { Distance, Left } from "../parts/distance.tsx"
import { EndFields, ReasonField, dateOf, extensionIn, grantIn, waysTo } from "../parts/fields.tsx"
import { Loaded, Paged, useLoad, usePages } from "../parts/load.tsx"
import { useProject } from "../parts/project.tsx"
import { ProjectScreen, ShortId } from "../parts/screen.tsx"
import {
  Ago,
  Announced,
  End as EndOf,
  Facts,
  MemberState,
  State,
  Time,
  dayText,
  utcOf,
} from "../parts/text.tsx"

interface Member {
  readonly project_id: string
  readonly user_id: string
}

interface Props {
  readonly member: Member
  readonly onDone: () => void
}

/** The end of a membership, with the time zone that it is in. */
const Until = ({ of, zone }: { readonly of: Membership; readonly zone: string }) => (
  <>
    <EndOf of={of} isExact /> {of.through === null ? "UTC" : `in ${zone}`}
  </>
)

/** Extends the end date on screen: refused if somebody else has changed it meanwhile. */
const Extend = (
  props: Props & { readonly of: Membership; readonly end: string; readonly zone: string },
) => {
  const { end, of, zone } = props
  const extend = (fields: FormData, isDry: boolean) =>
    api.memberships.extend({
      ...props.member,
      ...extensionIn(fields),
      reason: givenOf(fields, "reason"),
      expected_end_date: end,
      ...(isDry && { dry_run: true, events: true }),
    })
  /** Says when it ends, with its last day if it has one. */
  const endsAt = (fields: FormData, next: string): string => {
    const pause = of.paused_at === null ? "" : " plus the pause"
    const until = `until ${utcOf(next, true)} UTC${pause}`
    const isDay = fields.has("through") || (of.through !== null && !fields.has("end"))
    return isDay ? `through ${dayText(dayIn(zone, Date.parse(next) - 1))} (${until})` : until
  }
  return (
    <Action
      label="Extend"
      isMain
      title={`Extend the membership of ${props.member.user_id}`}
      confirm="Extend"
      check={async (fields) => {
        const { data } = await extend(fields, true)
        return (
          <>
            It would last {endsAt(fields, data.new_end_date)}, in place of {utcOf(end, true)}.
            <Announced of={data.announcements} />
            {previewOf(data.events)}
          </>
        )
      }}
      run={async (fields) => {
        const { data } = await extend(fields, false)
        return { message: `The membership lasts ${endsAt(fields, data.new_end_date)}.` }
      }}
      onDone={props.onDone}
    >
      <p class="dim">
        Now: <Until of={of} zone={zone} />, <Left of={of} />.
      </p>
      <EndFields ways={waysTo.extend} zone={zone} from={end} />
      <ReasonField />
    </Action>
  )
}

const Grant = (props: Props & { readonly label: string; readonly zone: string }) => (
  <Action
    label={props.label}
    title={`${props.label}: ${props.member.user_id}`}
    confirm={props.label}
    run={async (fields) => {
      await api.memberships.grant({
        ...props.member,
        ...grantIn(fields),
        reason: givenOf(fields, "reason"),
      })
      return { message: "The end is changed." }
    }}
    onDone={props.onDone}
  >
    <EndFields ways={waysTo.grant} zone={props.zone} />
    <ReasonField />
  </Action>
)

const Pause = ({ member, onDone, zone }: Props & { readonly zone: string }) => (
  <Action
    label="Pause"
    title={`Pause the membership of ${member.user_id}`}
    run={async (fields) => {
      await api.memberships.pause({
        ...member,
        through: givenOf(fields, "through"),
        until: dateOf(fields, "end"),
        reason: givenOf(fields, "reason"),
      })
      return { message: "The membership is paused." }
    }}
    onDone={onDone}
  >
    <p>The membership is not active meanwhile, and keeps the time that is left.</p>
    <EndFields label="End of the pause" ways={waysTo.pause} zone={zone} />
    <ReasonField />
  </Action>
)

const Resume = ({ member, onDone }: Props) => (
  <Action
    label="Resume"
    title={`Resume the membership of ${member.user_id}`}
    run={async (fields) => {
      await api.memberships.resume({ ...member, reason: givenOf(fields, "reason") })
      return { message: "The membership is resumed." }
    }}
    onDone={onDone}
  >
    <p>The membership goes on at once, with the time that was left.</p>
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
        <strong>{deeds[action]}</strong> <Time iso={at} isExact />{" "}
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
            , request <ShortId id={request_id} />
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
 * Explains gaps before the last page's oldest change. Stores limit a trail's age or number of rows.
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

/** The word before an end in UTC. */
const endWord = ({ grace_until, state }: Membership): string => {
  if (state === "paused") return "end date "
  return state === "active" && grace_until === null ? "ends " : "ended "
}

/** Until when somebody is a member. */
const Standing = ({ of, zone }: { readonly of: Membership | null; readonly zone: string }) =>
  of === null ? (
    <span>no member</span>
  ) : (
    <>
      {of.paused_at === null ? (
        <MemberState of={of} />
      ) : (
        <>
          <State of={of.state} />
          <span>
            since <Time iso={of.paused_at} />
            {of.resumes_at !== null && (
              <>
                {" "}
                until <Time iso={of.resumes_at} />
              </>
            )}{" "}
            UTC
          </span>
        </>
      )}
      {of.end_date === null ? (
        <span>for life</span>
      ) : (
        <>
          <span>
            {of.through === null && endWord(of)}
            <Until of={of} zone={zone} />
          </span>
          <span>
            <Distance of={of} />
            <Left of={of} />
          </span>
        </>
      )}
    </>
  )

const maxTexts = 16

/** The fields for metadata, one more than there are texts, if there may be more. */
const Pairs = ({ of }: { readonly of: Membership["metadata"] }) => {
  const [rows, setRows] = useState<ReadonlyArray<readonly [string, string]>>(
    [...Object.entries(of), ["", ""] as const].slice(0, maxTexts),
  )
  return (
    <>
      {rows.map(([name, text], index) => (
        <div class="pair" key={index}>
          <input
            name={`name-${index}`}
            aria-label="Name"
            placeholder="Name"
            pattern="[A-Za-z][A-Za-z0-9_.\-]*"
            maxLength={40}
            defaultValue={name}
          />
          <input
            name={`text-${index}`}
            aria-label={name === "" ? "Text" : `Text of ${name}`}
            placeholder="Text; none removes it"
            maxLength={255}
            defaultValue={text}
          />
          {/* Fields of text, too, since those leave out line breaks. */}
          <input hidden name={`old-name-${index}`} defaultValue={name} />
          <input hidden name={`old-text-${index}`} defaultValue={text} />
        </div>
      ))}
      {rows.length < maxTexts && (
        <button type="button" class="small" onClick={() => setRows([...rows, ["", ""]])}>
          Another one
        </button>
      )}
    </>
  )
}

/** Returns the texts in a form by name. */
const textsIn = (fields: FormData, kind = ""): ReadonlyMap<string, string> => {
  const rows = Array.from({ length: maxTexts }, (_, index) => index)
  return new Map(
    rows.flatMap((index) => {
      const [name, text] = ["name", "text"].map((part) => textOf(fields, `${kind}${part}-${index}`))
      return name && text ? [[name, text] as const] : []
    }),
  )
}

/**
 * Returns the change: new texts by name, and null for removed names. Omits unedited texts, because
 * somebody else may edit them meanwhile.
 */
const changedMetadata = (fields: FormData): Readonly<Record<string, string | null>> => {
  const [before, next] = [textsIn(fields, "old-"), textsIn(fields)]
  const changed = [...next].filter(([name, text]) => before.get(name) !== text)
  const gone = [...before.keys()].filter((name) => !next.has(name))
  return Object.fromEntries([...changed, ...gone.map((name) => [name, null] as const)])
}

const Metadata = (props: Props & { readonly of: Membership; readonly mayChange: boolean }) => {
  const { mayChange, member, of, onDone } = props
  const texts = Object.entries(of.metadata)
  return (
    <aside aria-label="Metadata">
      <h3>Metadata</h3>
      {texts.length === 0 ? <p class="dim">None is kept.</p> : <Facts of={texts} />}
      {mayChange && (
        <Action
          label="Edit"
          isSmall
          title={`Metadata of ${member.user_id}`}
          confirm="Save"
          run={async (fields) => {
            await api.memberships.update({
              ...member,
              metadata: changedMetadata(fields),
              reason: givenOf(fields, "reason"),
            })
            return { message: "The metadata is changed." }
          }}
          onDone={onDone}
        >
          <Pairs of={of.metadata} />
          <ReasonField />
        </Action>
      )}
    </aside>
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
  const zone = useProject(project).value?.time_zone
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
      sub={value !== undefined && zone !== undefined && <Standing of={value} zone={zone} />}
      actions={
        <>
          {mayExtend && value?.end_date && zone !== undefined && (
            <Extend member={member} of={value} end={value.end_date} zone={zone} onDone={onDone} />
          )}
          {mayChange && value !== undefined && zone !== undefined && (
            <Grant
              member={member}
              zone={zone}
              label={value === null ? "Grant" : "Set the end"}
              onDone={onDone}
            />
          )}
          {mayChange &&
            value?.state === "active" &&
            value.grace_until === null &&
            zone !== undefined && <Pause member={member} zone={zone} onDone={onDone} />}
          {mayChange && value?.state === "paused" && <Resume member={member} onDone={onDone} />}
          {mayChange && value && <End member={member} onDone={onDone} />}
        </>
      }
    >
      <Loaded from={found}>
        {(membership) => (
          <div class="sides">
            <div>
              {maySee && (
                <History member={member} isMember={membership !== null} turn={String(changes)} />
              )}
            </div>
            {membership !== null && (
              <Metadata of={membership} member={member} mayChange={mayChange} onDone={onDone} />
            )}
          </div>
        )}
      </Loaded>
    </ProjectScreen>
  )
}
