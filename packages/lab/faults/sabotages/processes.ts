/** Falsified answers and processes. */

import { healing, statuses, waits } from "../checks/answers.ts"
import { growth } from "../checks/growth.ts"
import { limits, refusals } from "../checks/limits.ts"
import { exits, logs, sizes } from "../checks/processes.ts"
import type { Holding, Operation, Run, Sample } from "../history.ts"
import { type Sabotage, hour, replace, wanted, withOperation } from "./sabotage.ts"

const anyOperation = ({ operations }: Run): Operation =>
  wanted(operations.find(({ key, status }) => key !== undefined && status === 200))

const spoilExit = (run: Run, changed: { code?: number; millis?: number }): Run => {
  const exit = wanted(run.exits[0])
  return { ...run, exits: replace(run.exits, exit, { ...exit, ...changed }) }
}

const spoilSize = (run: Run, changed: Partial<Holding>): Run => {
  const size = wanted(run.sizes[0])
  const after = { ...size.after, ...changed }
  return { ...run, sizes: replace(run.sizes, size, { ...size, after }) }
}

/** Adds a server that runs for half an hour and holds more each minute. */
const grownBy = (run: Run, grow: (sample: Sample, minute: number) => Partial<Sample>): Run => {
  const sample = wanted(run.samples[0])
  const grown = Array.from({ length: 30 }, (_, minute) => ({
    ...sample,
    id: 0,
    at: sample.at + minute * 60_000,
    ...grow(sample, minute),
  }))
  return { ...run, samples: [...run.samples, ...grown] }
}

/** Falsified answers and processes. */
export const ofProcesses: ReadonlyArray<Sabotage> = [
  {
    name: "a key is admitted more often than it may be",
    check: limits,
    spoil: (run) => {
      const operation = anyOperation(run)
      const at = operation.end + hour
      const more = Array.from({ length: 30 }, () => ({ ...operation, start: at, end: at }))
      return { ...run, operations: [...run.operations, ...more] }
    },
  },
  {
    name: "somebody is refused who keeps to the limits",
    check: refusals,
    spoil: (run) => {
      const operation = wanted(
        run.operations.find(
          ({ action, key, status }) =>
            action === "listWebhooks" && key !== undefined && status === 200,
        ),
      )
      const refused = [1, 2].map((hours) => {
        const at = operation.end + hours * hour
        return { ...operation, status: 429, start: at, end: at }
      })
      return { ...run, operations: [...run.operations, ...refused] }
    },
  },
  {
    name: "an answer is 500",
    check: statuses,
    spoil: (run) => {
      const operation = anyOperation(run)
      return withOperation(run, operation, { ...operation, status: 500 })
    },
  },
  {
    name: "an answer takes a minute",
    check: waits,
    spoil: (run) => {
      const operation = anyOperation(run)
      return withOperation(run, operation, { ...operation, end: operation.end + 60_000 })
    },
  },
  {
    name: "an answer is 503 while all is well",
    check: healing,
    spoil: (run) => {
      const operation = anyOperation(run)
      const at = operation.end + hour
      return withOperation(run, operation, { ...operation, status: 503, start: at, end: at })
    },
  },
  {
    name: "a server ends with an error",
    check: exits,
    spoil: (run) => spoilExit(run, { code: 1 }),
  },
  {
    name: "a log contains an API key",
    check: logs,
    spoil: (run) => {
      const [secret] = Object.values(run.secrets)
      return { ...run, logs: [...run.logs, { process: "s1", text: `{"token":"${secret}"}` }] }
    },
  },
  {
    name: "memory grows",
    check: sizes,
    spoil: (run) => spoilSize(run, { bytes: 2 ** 33 }),
  },
  {
    name: "the heap of a server grows by a little each minute",
    check: growth,
    spoil: (run) =>
      grownBy(run, ({ heapBytes }, minute) => ({ heapBytes: heapBytes + minute * 2 ** 20 })),
  },
  {
    name: "a server gets more memory each minute, outside of its heap",
    check: growth,
    spoil: (run) => grownBy(run, ({ bytes }, minute) => ({ bytes: bytes + minute * 2 ** 23 })),
  },
  {
    name: "a server leaves some files open each minute",
    check: growth,
    spoil: (run) => grownBy(run, ({ handles }, minute) => ({ handles: handles + 3 * minute })),
  },
]
