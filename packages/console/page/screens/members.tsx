/** A project's members. */

import type { EndCounts, Membership } from "@tenure/client"
import { useEffect, useState } from "preact/hooks"
import { api } from "../lib/api.ts"
import { now } from "../lib/clock.ts"
import { useMay } from "../lib/identity.ts"
import { userId } from "../lib/ids.ts"
import { go, kindAsked, to } from "../lib/route.ts"
import { Action, givenOf, textOf } from "../parts/action.tsx"
import { Distance, Left, soonDays } from "../parts/distance.tsx"
import { useEnds } from "../parts/ends.tsx"
import {
  EndFields,
  ReasonField,
  SearchField,
  TextField,
  grantIn,
  waysTo,
} from "../parts/fields.tsx"
import { Paged, Problem, usePages, useSettled } from "../parts/load.tsx"
import { useProject } from "../parts/project.tsx"
import { Empty, ProjectScreen, Table } from "../parts/screen.tsx"
import { End, MemberState, lastDate } from "../parts/text.tsx"

const pageSize = 100

const typingPause = 200

const dayMillis = 86_400_000

const chips = ["All", "Active", "Overdue", "Ends in 7 days", "Paused", "Expired"] as const

type Chip = (typeof chips)[number]

type Order = "end" | "user"

interface Props {
  readonly project: string
}

interface Zoned extends Props {
  /** The project's time zone. */
  readonly zone: string
}

const Grant = ({ project, zone }: Zoned) => {
  let user = ""
  return (
    <Action
      label="Grant a membership"
      title="Grant a membership"
      confirm="Grant"
      isMain
      run={async (fields) => {
        user = textOf(fields, "user")
        const { data } = await api.memberships.grant({
          project_id: project,
          user_id: user,
          ...grantIn(fields),
          reason: givenOf(fields, "reason"),
          ...(fields.has("absent") && { if_absent: true }),
        })
        return {
          message:
            data.created === false
              ? `${user} has a membership already: nothing was changed.`
              : `${user} is a member.`,
        }
      }}
      onDone={() => go("projects", project, "members", user)}
    >
      <TextField label="User" name="user" required maxLength={255} autofocus />
      <EndFields ways={waysTo.grant} zone={zone} />
      <p>
        <label>
          <input type="checkbox" name="absent" /> Only if there is no membership, not even an
          expired one
        </label>
      </p>
      <ReasonField />
    </Action>
  )
}

/** The chosen filter and order. */
interface Asked {
  readonly chip: Chip
  readonly order: Order
  /** The user ids' beginning. */
  readonly prefix: string
}

const collator = new Intl.Collator("en", { numeric: true })

const endOf = ({ end_date }: Membership): string => end_date ?? lastDate

/** Sorts a whole list. */
const sorted = (data: ReadonlyArray<Membership>, order: Order): ReadonlyArray<Membership> => {
  const byUser = data.toSorted((a, b) => collator.compare(a.user_id, b.user_id))
  return order === "user" ? byUser : byUser.toSorted((a, b) => endOf(a).localeCompare(endOf(b)))
}

const inTime = (days: number): string => new Date(now() + days * dayMillis).toISOString()

const chipAsked = (kind: string): Chip => {
  if (kind === "soon") return "Ends in 7 days"
  if (kind === "overdue") return "Overdue"
  if (kind === "paused") return "Paused"
  return kind === "expired" ? "Expired" : "Active"
}

/** Returns the number of members by kind. */
const countOf = (chip: Chip, counts: EndCounts): number => {
  const { active, ends_in_7_days, expired, overdue, paused, total } = counts
  // Ends before a date include those in grace.
  const of = { All: total, Active: active, Overdue: overdue, Paused: paused, Expired: expired }
  return chip === "Ends in 7 days" ? overdue + ends_in_7_days : of[chip]
}

/** Returns the API's filters for a choice. */
const filterOf = ({ chip, order, prefix }: Asked) => {
  if (prefix !== "") return { prefix }
  if (chip === "Ends in 7 days") return { ending_before: inTime(soonDays) }
  if (chip === "Overdue") return { ending_before: inTime(0) }
  if (chip === "Active") {
    return order === "end" ? { ending_before: lastDate } : { state: "active" as const }
  }
  if (chip === "Paused") return { state: "paused" as const }
  return chip === "Expired" ? { state: "expired" as const } : {}
}

/** Whether the API sorts active memberships by end. Its list lacks those for life. */
const isByEnd = (asked: Asked): boolean => filterOf(asked).ending_before === lastDate

/** Lists a page: active memberships in any order if they fit on it, because the console sorts them then. */
const listed = async (
  asked: Asked,
  project_id: string,
  after: string | undefined,
  options: { readonly signal: AbortSignal },
) => {
  const page = { project_id, after, limit: pageSize }
  if (after === undefined && isByEnd(asked)) {
    const all = await api.memberships.list({ ...page, state: "active" }, options)
    if (all.next === null) return all
  }
  return api.memberships.list({ ...page, ...filterOf(asked) }, options)
}

/** Whether the API sorts by either. */
const hasBothOrders = ({ chip, prefix }: Asked): boolean => chip === "Active" && prefix === ""

/** Returns the API's order for a filter: the only one, if there are several pages. */
const listedOrder = (asked: Asked): Order => ("ending_before" in filterOf(asked) ? "end" : "user")

const Row = ({ of, project }: Props & { readonly of: Membership }) => (
  <tr>
    <td class="long">
      <a data-row href={to("projects", project, "members", of.user_id)}>
        {of.user_id}
      </a>
    </td>
    <td>
      <MemberState of={of} />
    </td>
    <td>
      <End of={of} />
    </td>
    <td class="dim">
      <Distance of={of} />
      <Left of={of} />
    </td>
  </tr>
)

const Nothing = ({
  asked,
  mayGrant,
  ...zoned
}: Zoned & { readonly asked: Asked; readonly mayGrant: boolean }) => {
  if (asked.prefix !== "") return <Empty says={`No member’s id begins with ${asked.prefix}.`} />
  if (asked.chip !== "All") {
    const says = {
      Active: "No membership is active.",
      Overdue: "No membership is in grace.",
      "Ends in 7 days": "No membership ends in 7 days.",
      Paused: "No membership is paused.",
      Expired: "No membership is expired.",
    }
    return <Empty says={says[asked.chip]} />
  }
  return (
    <Empty
      says="There are no members yet."
      line={`npx tenure members grant 1001 2027-12-31 --project ${zoned.project}`}
    >
      {mayGrant && <Grant {...zoned} />}
    </Empty>
  )
}

/** A page with members. The console sorts it only if it is the whole list. */
const Members = (
  props: Zoned & {
    readonly of: ReadonlyArray<Membership>
    readonly isWhole: boolean
    readonly asked: Asked
    readonly onSort: (order: Order) => void
  },
) => {
  const { asked, isWhole, of, onSort, project, zone } = props
  const order = isWhole ? asked.order : listedOrder(asked)
  const sortable = (by: Order) => ({
    isSorted: order === by,
    onSort: isWhole || hasBothOrders(asked) ? () => onSort(by) : undefined,
  })
  return (
    <Table
      label="Members"
      columns={[
        { name: "User", ...sortable("user") },
        "State",
        { name: zone === "UTC" ? "Ends (UTC)" : `Ends (UTC, days in ${zone})`, ...sortable("end") },
        "",
      ]}
    >
      {(isWhole ? sorted(of, order) : of).map((membership) => (
        <Row key={membership.user_id} project={project} of={membership} />
      ))}
    </Table>
  )
}

/** The list with its filters. */
export const MembersScreen = ({ project }: Props) => {
  const [chip, setChip] = useState<Chip>(() => chipAsked(kindAsked()))
  const [order, setOrder] = useState<Order>("end")
  const [typed, setTyped] = useState("")
  const prefix = useSettled(typed.trim(), typingPause)
  const asked: Asked = { chip, order, prefix }
  const facts = useProject(project)
  const members = usePages(
    (after, signal) => {
      if (prefix !== "" && !userId.test(prefix)) {
        return Promise.resolve({ data: [], next: null })
      }
      return listed(asked, project, after, { signal })
    },
    JSON.stringify([chip === "Active" ? order : "", chip, prefix]),
    true,
  )
  const ends = useEnds(project)
  const mayGrant = useMay("operator")
  useEffect(() => {
    // A project without active members is not an empty one.
    if (facts.value?.memberships === 0) setChip("All")
  }, [facts.value?.memberships])
  if (facts.value === undefined) {
    return (
      <ProjectScreen project={project} tab="members">
        {facts.error === undefined ? <p class="dim">Loading…</p> : <Problem error={facts.error} />}
      </ProjectScreen>
    )
  }
  const has: Readonly<Partial<Record<Chip, boolean>>> = {
    Overdue: facts.value.grace !== null,
    Paused: (ends.value?.paused ?? 0) > 0,
  }
  const shownChips = chips.filter((one) => one === chip || has[one] !== false)
  const zoned = { project, zone: facts.value.time_zone }
  return (
    <ProjectScreen project={project} tab="members" actions={mayGrant && <Grant {...zoned} />}>
      <div class="filters" role="search">
        <SearchField
          label="Find members whose id begins with"
          placeholder="Id of a user"
          value={typed}
          onType={setTyped}
        />
        {shownChips.map((one) => (
          <button
            key={one}
            type="button"
            class="chip"
            aria-pressed={one === chip && prefix === ""}
            onClick={() => {
              setChip(one)
              setTyped("")
            }}
          >
            {one}
            {ends.value !== undefined && (
              <span>{countOf(one, ends.value).toLocaleString("en")}</span>
            )}
          </button>
        ))}
      </div>
      <Paged of={members}>
        {(data, next) => {
          const lacksSome = isByEnd(asked) && data.length < (ends.value?.active ?? 0)
          return data.length === 0 && !lacksSome ? (
            <Nothing {...zoned} asked={asked} mayGrant={mayGrant} />
          ) : (
            <>
              <Members
                {...zoned}
                of={data}
                isWhole={next === null && members.back === undefined}
                asked={asked}
                onSort={setOrder}
              />
              {lacksSome && <p class="dim">This order has none for life.</p>}
            </>
          )
        }}
      </Paged>
    </ProjectScreen>
  )
}
