/** Plans how to store a seed file: checks all entries first, and groups them into batches. */

import { InvalidInput, type Role } from "@tenure/core"
import { Day, graceSetting, readPause } from "@tenure/core/internal"
import {
  ProjectId,
  TimeZone,
  UserId,
  isToken,
  parseTimeZone,
  readEndDate,
  roles,
} from "@tenure/core/store"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { reasonsOf } from "./log.ts"
import { StartError } from "./start-error.ts"

const KeyWithRole = Schema.Struct({
  token: Schema.String,
  role: Schema.Literals(roles),
  /** Its name in the audit trail. */
  name: Schema.optionalKey(Schema.String),
})

const Member = Schema.Struct({
  user_id: Schema.String,
  /** Null for life. */
  end_date: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** In place of a date: the last whole day. */
  through: Schema.optionalKey(Schema.String),
  /** Of the day; by default, the project's. */
  time_zone: Schema.optionalKey(Schema.String),
  kept_day: Schema.optionalKey(Schema.Number),
  paused_at: Schema.optionalKey(Schema.String),
  resumes_at: Schema.optionalKey(Schema.String),
  metadata: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
})

const Project = Schema.Struct({
  id: Schema.String,
  time_zone: Schema.optionalKey(Schema.String),
  /** Null for none. */
  grace: Schema.optionalKey(Schema.NullOr(Schema.String)),
  memberships: Schema.optionalKey(Schema.Array(Member)),
  api_keys: Schema.optionalKey(Schema.Array(Schema.Union([Schema.String, KeyWithRole]))),
})

/** A seed file. */
export const SeedFile = Schema.fromJsonString(
  Schema.Struct({
    projects: Schema.Array(Project),
    /** The keys for all projects. */
    api_keys: Schema.optionalKey(Schema.Array(KeyWithRole)),
  }),
)

/** Some memberships of a project. */
export interface SeedPart {
  readonly projectId: string
  readonly memberships: ReadonlyArray<NewMember>
}

/** A membership for an import. */
interface NewMember {
  readonly userId: string
  readonly endDate: string | null | undefined
  readonly through: Day | undefined
  readonly timeZone: TimeZone | undefined
  readonly keptDay: number | undefined
  readonly pausedAt: number | undefined
  readonly resumesAt: number | undefined
  readonly metadata: Readonly<Record<string, string>> | undefined
}

/** An API key, with all projects that the file gives it. */
export interface SeedKey {
  readonly token: string
  readonly role: Role
  readonly name: string | undefined
  readonly projects: ReadonlySet<string> | "all"
  /** Its first entry in the file. */
  readonly path: Path
}

/** All entries of a seed file, in the order for storing them. */
export interface SeedPlan {
  /** Parts to store together, each batch in about a second. */
  readonly batches: ReadonlyArray<ReadonlyArray<SeedPart>>
  readonly keys: ReadonlyArray<SeedKey>
  /** The settings of new projects that have some in the file. */
  readonly settings: ReadonlyMap<string, SeedSettings>
}

/** A project's settings in the file. */
export interface SeedSettings {
  readonly timeZone: TimeZone | undefined
  readonly grace: string | null | undefined
}

type Path = ReadonlyArray<string | number>

/** Adds the path of its entry to an error. */
export const locateInSeed = (path: Path, fault: Error): StartError =>
  new StartError({ message: [...path, reasonsOf(fault)].join(": ") })

// Few enough for one transaction on a slow machine, and enough for few transactions.
const maxMemberships = 2000
const maxProjects = 100

const invalid = (field: string, expected: string): InvalidInput =>
  new InvalidInput({ field, problem: `must be ${expected}` })

const repeatedUser = new StartError({ message: "user_id: the user has an entry before" })

/** Reads when a membership ends, or throws an error. */
const readEnd = ({
  end_date: endDate,
  through,
  time_zone,
}: typeof Member.Type): Pick<NewMember, "endDate" | "through" | "timeZone"> => {
  if (through === undefined) {
    if (time_zone !== undefined) throw invalid("time_zone", "left out without through")
    if (endDate === undefined) throw invalid("end_date", "there, or through in place of it")
    if (endDate !== null) Result.getOrThrow(readEndDate(endDate))
    return { endDate, through, timeZone: undefined }
  }
  if (endDate !== undefined) throw invalid("end_date", "left out beside through")
  if (!Day.is(through)) throw invalid("through", Day.expected)
  const timeZone = time_zone === undefined ? undefined : parseTimeZone(time_zone)
  if (time_zone !== undefined && timeZone === undefined)
    throw invalid("time_zone", TimeZone.expected)
  return { endDate, through, timeZone }
}

const pauseNames = { pausedAt: "paused_at", resumesAt: "resumes_at" }

/** Converts a membership for an import, or throws an error. */
const readMember = (given: typeof Member.Type): NewMember => {
  const { kept_day: keptDay, metadata, paused_at: pausedAt, resumes_at: resumesAt, user_id } = given
  if (!UserId.is(user_id)) throw invalid("userId", UserId.expected)
  if (keptDay !== undefined && !(Number.isInteger(keptDay) && keptDay >= 1 && keptDay <= 31))
    throw invalid("kept_day", "a whole number from 1 to 31")
  const pause = Result.getOrThrow(readPause({ pausedAt, resumesAt }, pauseNames, "json"))
  return {
    userId: user_id,
    ...readEnd(given),
    keptDay,
    pausedAt: pause?.since,
    resumesAt: pause?.until,
    metadata,
  }
}

const naming = <A>(path: Path, read: () => A): A => {
  try {
    return read()
  } catch (fault) {
    throw fault instanceof Error ? locateInSeed(path, fault) : fault
  }
}

/** Adds a project's settings. If it has several entries in the file, the first one with a setting counts. */
const readSettings = (
  { grace, id, time_zone }: typeof Project.Type,
  path: Path,
  settings: Map<string, SeedSettings>,
): void => {
  if (time_zone === undefined && grace === undefined) return
  const timeZone = time_zone === undefined ? undefined : parseTimeZone(time_zone)
  const before = settings.get(id)
  naming(path, () => {
    if (time_zone !== undefined && timeZone === undefined)
      throw invalid("time_zone", TimeZone.expected)
    if (grace !== undefined) Result.getOrThrow(graceSetting.read(grace, "grace"))
    settings.set(id, {
      timeZone: before?.timeZone ?? timeZone,
      grace: before?.grace === undefined ? grace : before.grace,
    })
  })
}

/** Adds a project's memberships. If a user has several entries in the file, the first one counts. */
const readProject = (
  { id, memberships = [] }: typeof Project.Type,
  path: Path,
  known: Map<string, NewMember>,
): void => {
  const seen = new Set<string>()
  naming(path, () => {
    if (!ProjectId.is(id)) throw invalid("projectId", ProjectId.expected)
  })
  for (const [index, given] of memberships.entries()) {
    naming([...path, "memberships", index], () => {
      const member = readMember(given)
      const { userId } = member
      if (seen.has(userId)) throw repeatedUser
      seen.add(userId)
      if (!known.has(userId)) known.set(userId, member)
    })
  }
}

const readKey = (
  given: string | typeof KeyWithRole.Type,
  project: string | undefined,
  path: Path,
  keys: Map<string, SeedKey>,
): void =>
  naming(path, () => {
    const { name, role, token } =
      typeof given === "string"
        ? { role: "client" as const, token: given, name: undefined }
        : { name: undefined, ...given }
    if (!isToken(token))
      throw invalid("token", "1 to 1,024 characters of visible ASCII, with spaces only inside")
    const before = keys.get(token)
    if (before !== undefined && before.role !== role)
      throw new StartError({
        message: `token: it has an entry before, whose role is ${before.role}`,
      })
    const projects =
      project === undefined || before?.projects === "all"
        ? "all"
        : new Set([...(before?.projects ?? []), project])
    keys.set(token, {
      token,
      role,
      name: before?.name ?? name,
      projects,
      path: before?.path ?? path,
    })
  })

const partsOf = (
  projectId: string,
  members: ReadonlyMap<string, NewMember>,
): ReadonlyArray<SeedPart> => {
  const all = [...members.values()]
  const count = Math.max(1, Math.ceil(all.length / maxMemberships))
  return Array.from({ length: count }, (_, index) => ({
    projectId,
    memberships: all.slice(index * maxMemberships, (index + 1) * maxMemberships),
  }))
}

const batchesOf = (parts: ReadonlyArray<SeedPart>): SeedPlan["batches"] => {
  const batches: Array<Array<SeedPart>> = []
  let room = 0
  for (const part of parts) {
    const batch = batches.at(-1)
    if (batch === undefined || batch.length === maxProjects || part.memberships.length > room) {
      batches.push([part])
      room = maxMemberships
    } else batch.push(part)
    room -= part.memberships.length
  }
  return batches
}

/** Plans how to store a seed file. Fails with the first invalid entry. */
export const planSeed = (seed: typeof SeedFile.Type): Result.Result<SeedPlan, StartError> =>
  Result.try({
    try: () => {
      const members = new Map<string, Map<string, NewMember>>()
      const keys = new Map<string, SeedKey>()
      const settings = new Map<string, SeedSettings>()
      for (const [index, project] of seed.projects.entries()) {
        const path = ["projects", index]
        const known = members.get(project.id) ?? new Map<string, NewMember>()
        members.set(project.id, known)
        readProject(project, path, known)
        readSettings(project, path, settings)
        for (const [number, key] of (project.api_keys ?? []).entries())
          readKey(key, project.id, [...path, "api_keys", number], keys)
      }
      for (const [index, key] of (seed.api_keys ?? []).entries())
        readKey(key, undefined, ["api_keys", index], keys)
      const parts = [...members].flatMap(([projectId, known]) => partsOf(projectId, known))
      return { batches: batchesOf(parts), keys: [...keys.values()], settings }
    },
    catch: (fault) =>
      fault instanceof StartError ? fault : new StartError({ message: reasonsOf(fault) }),
  })
