/** Projects with as many keys as it takes to follow each from all its slots. */

const keys = 10
const perKey = 10

/** A project's slots: ten keys have ten each. */
export const perProject = keys * perKey

/** A project and its keys' tokens. */
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

/** How clients listen. */
export type Transport = "SSE" | "WebSocket"

const headers: Readonly<Record<Transport, ReadonlyArray<string>>> = {
  SSE: ["Accept: text/event-stream"],
  WebSocket: [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: tenure.v1",
  ],
}

/** A short text as a client's frame, masked with zeros, which change nothing (RFC 6455, 5.2). */
const frame = (text: string): string =>
  `\u0081${String.fromCharCode(128 + text.length)}\0\0\0\0${text}`

/** What a client sends first, as text whose characters are bytes. */
const requestOf = (transport: Transport, projectId: string, token: string): string => {
  const isStream = transport === "SSE"
  const lines = [
    `GET /v2/${isStream ? `projects/${projectId}/events` : "realtime"} HTTP/1.1`,
    "Host: 127.0.0.1",
    `Authorization: Bearer ${token}`,
    ...headers[transport],
    "\r\n",
  ]
  const subscription = JSON.stringify({ type: "subscribe", project: projectId })
  return lines.join("\r\n") + (isStream ? "" : frame(subscription))
}

/** Requests that follow these projects, one project after the other, from so many slots. */
export const requests = (
  transport: Transport,
  projects: number,
  slots: number,
): ReadonlyArray<string> =>
  followed(projects)
    .flatMap(({ projectId, tokens }) =>
      tokens.flatMap((token) =>
        Array.from({ length: perKey }, () => requestOf(transport, projectId, token)),
      ),
    )
    .slice(0, slots)
