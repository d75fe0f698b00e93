/** Projects with as many keys as it takes to follow each from all its seats. */

const keys = 10
const perKey = 10

/** The seats of a project: ten keys have ten each. */
export const perProject = keys * perKey

/** A project and the tokens of its keys. */
export interface Followed {
  readonly projectId: string
  readonly tokens: ReadonlyArray<string>
}

/** So many projects. */
export const followed = (count: number): ReadonlyArray<Followed> =>
  Array.from({ length: count }, (_, project) => ({
    projectId: `followed-${project}`,
    tokens: Array.from({ length: keys }, (__, key) => `benchmark-followed-${project}-${key}`),
  }))

/** Requests that follow these projects, one project after the other, from so many seats. */
export const requests = (projects: number, seats: number): ReadonlyArray<string> =>
  followed(projects)
    .flatMap(({ projectId, tokens }) =>
      tokens.flatMap((token) =>
        Array.from({ length: perKey }, () =>
          [
            `GET /v2/projects/${projectId}/events HTTP/1.1`,
            "Host: 127.0.0.1",
            "Accept: text/event-stream",
            `Authorization: Bearer ${token}`,
            "\r\n",
          ].join("\r\n"),
        ),
      ),
    )
    .slice(0, seats)
