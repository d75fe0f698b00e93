/** How many may wait for events at a time: of each client, in each project, and in the process. */

/** The most who may wait. */
export interface Most {
  readonly perClient: number
  readonly perProject: number
  readonly inAll: number
}

/** The defaults. */
export const most: Most = { perClient: 10, perProject: 100, inAll: 10_000 }

/** The slots of those who wait. */
export interface Slots {
  /** Takes a slot. Returns `false` when all are taken. */
  readonly take: (client: string, project: string) => boolean
  readonly giveBack: (client: string, project: string) => void
}

/** Counts by name. What is back at 0 takes no memory. */
const counter = () => {
  const counts = new Map<string, number>()
  const of = (name: string): number => counts.get(name) ?? 0
  return {
    of,
    add: (name: string, change: 1 | -1): void => {
      const count = of(name) + change
      if (count === 0) counts.delete(name)
      else counts.set(name, count)
    },
  }
}

/** Makes the slots, all of them free. */
export const make = ({ inAll, perClient, perProject }: Most): Slots => {
  const clients = counter()
  const projects = counter()
  let taken = 0

  const change = (client: string, project: string, by: 1 | -1): void => {
    clients.add(client, by)
    projects.add(project, by)
    taken += by
  }

  return {
    take: (client, project) => {
      const isFree =
        taken < inAll && clients.of(client) < perClient && projects.of(project) < perProject
      if (isFree) change(client, project, 1)
      return isFree
    },
    giveBack: (client, project) => change(client, project, -1),
  }
}
