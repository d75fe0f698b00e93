/** Falsified readers of the feed and connections. */

import { intrusions, revocations, slots } from "../checks/connections.ts"
import { feed, missedBy } from "../checks/feed.ts"
import type { Got, Reader, Run } from "../history.ts"
import { type Sabotage, hour, replace, wanted } from "./sabotage.ts"

const change = (run: Run, spoil: (got: ReadonlyArray<Got>) => ReadonlyArray<Got>): Run => {
  const reader = wanted(run.readers.find(({ got }) => got.length > 2))
  const by: Reader = { ...reader, got: spoil(reader.got) }
  return { ...run, readers: replace(run.readers, reader, by) }
}

const middleOf = (got: ReadonlyArray<Got>): Got => wanted(got[Math.floor(got.length / 2)])

/** Falsified readers of the feed and connections. */
export const ofReaders: ReadonlyArray<Sabotage> = [
  {
    name: "a reader misses an event",
    check: feed,
    spoil: (run) =>
      change(run, (got) => {
        const { eventId } = middleOf(got)
        return got.filter((one) => one.eventId !== eventId)
      }),
  },
  {
    name: "a feed asks for what comes after the last position",
    check: feed,
    spoil: (run) => {
      wanted(missedBy(run.naive, run)[0])
      return { ...run, readers: [...run.readers, run.naive] }
    },
  },
  {
    name: "a reader gets an event that never happened",
    check: feed,
    spoil: (run) => change(run, (got) => [...got, { ...middleOf(got), eventId: "another" }]),
  },
  {
    name: "a reader gets an event again that its cursor has passed",
    check: feed,
    spoil: (run) => change(run, (got) => [...got, wanted(got.find(({ isSettled }) => isSettled))]),
  },
  {
    name: "a reader gets events in another order",
    check: feed,
    spoil: (run) => change(run, (got) => got.toReversed()),
  },
  {
    name: "a reader gets events late",
    check: feed,
    spoil: (run) => change(run, (got) => got.map((one) => ({ ...one, at: one.at + hour }))),
  },
  {
    name: "a key has eleven connections",
    check: slots,
    spoil: (run) => {
      const connection = wanted(run.connections[0])
      const crowd = Array.from({ length: 11 }, () => connection)
      return { ...run, connections: [...run.connections, ...crowd] }
    },
  },
  {
    name: "a connection outlives its key",
    check: revocations,
    spoil: (run) => {
      const revocation = wanted(run.revocations[0])
      const by = { ...revocation, ended: revocation.ended + hour }
      return { ...run, revocations: replace(run.revocations, revocation, by) }
    },
  },
  {
    name: "a connection outlives what is no frame of the protocol",
    check: intrusions,
    spoil: (run) => {
      const intrusion = wanted(run.intrusions[0])
      const by = { ...intrusion, ended: intrusion.ended + hour }
      return { ...run, intrusions: replace(run.intrusions, intrusion, by) }
    },
  },
]
