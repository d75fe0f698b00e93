/** Request lines: API operations, and what hostile clients make of them. */

import * as fc from "fast-check"
import { basePath, projectId, userIds, webhookPlaceholder, words } from "./vocabulary.ts"

/** A method and a request target. */
export interface Line {
  readonly method: string
  readonly target: string
}

const [user = ""] = userIds
const project = `${basePath}/v2/projects/${projectId}`
const webhooks = `${project}/integrations/webhooks`

const unknownId = "01a202e3-1074-7765-acfd-b456e9c1556c"

const linesOf = (text: string): fc.Arbitrary<Line> =>
  fc.constantFrom(
    ...text
      .trim()
      .split("\n")
      .map((one) => words(one))
      .map(([method = "", target = ""]) => ({ method, target })),
  )

const documented = linesOf(`
  PATCH ${project}/memberships/${user}/extend
  PATCH ${project}/memberships/extend
  GET ${webhooks}
  POST ${webhooks}
  DELETE ${webhooks}/${webhookPlaceholder}
`)

// What they answer depends neither on time nor on earlier invalid requests.
const further = linesOf(`
  GET ${basePath}/v2/projects
  GET ${project}
  PUT ${project}
  GET ${project}/memberships
  POST ${project}/memberships/import
  GET ${project}/memberships/${user}
  PUT ${project}/memberships/${user}
  DELETE ${project}/memberships/77
  POST ${project}/memberships/77/pause
  POST ${project}/memberships/77/resume
  POST ${project}/memberships/77/move
  GET ${project}/memberships/77/history
  POST ${project}/events
  GET ${project}/events/${unknownId}
  GET ${webhooks}/${webhookPlaceholder}
  PATCH ${webhooks}/${webhookPlaceholder}
  POST ${webhooks}/${webhookPlaceholder}/ping
  POST ${webhooks}/${webhookPlaceholder}/enable
  POST ${webhooks}/${webhookPlaceholder}/rotate
  GET ${webhooks}/${webhookPlaceholder}/deliveries
  POST ${webhooks}/${webhookPlaceholder}/replay
  GET ${basePath}/v2/api-keys?role=client
  POST ${basePath}/v2/api-keys
  DELETE ${basePath}/v2/api-keys/${unknownId}
  GET ${basePath}/v2/identity
  GET ${basePath}/v2/status
`)

const operation = fc.oneof({ weight: 1, arbitrary: documented }, { weight: 2, arbitrary: further })

const methods = words(`
  GET HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND PURGE SEARCH M-SEARCH QUERY FOO patch Get
  get __proto__ CONNECT PATC
`)

const ids = [
  ...words(String.raw`
    p2 %70%31 %00 %2F %2f..%2f %2e %2e%2e . .. ... %0d%0a %20 % %z %zz %c3 %ff %c3%28 %ed%a0%80
    %u0041 %F0%9F%92%A9 %25 __proto__ constructor toString * :project_id '-- 1001;a=b a,b a+b 0
    00000000000000000000000001001 -1 1e3 \ {}
  `),
  ...words("\xe9 \xff\xfe \xc3\xa9"),
  "",
  ...[99, 101, 255, 256, 4000].map((length) => "x".repeat(length)),
]

const suffixes = words(`
  ? ?a=b ?a=%zz ?extend=1&extend=2 ?limit=1 ?limit=1000&state=active ?limit=1001 ?limit=1&limit=1
  ?limit=%31 ?state=expired&after=1001 ?state= ?after=0.1
  ?after=99999999999999999999.99999999999999999999 ?after=-1.-1 ?after=${unknownId} ?after=%00
  ?after=${"9".repeat(300)} ?__proto__=1 # #a ?# #? / // /.
`)

const authorities = words(`
  http://localhost https://localhost:80 HTTP://a.example http://[::1]:3000 http:// http://a@b
  http://a;b foo://a //a http:/ http://a%zz
`)

const targets = ["", ...words(`* / // a /v2 ${basePath} ${basePath}/ http://localhost`)]

const replaceSegment = (target: string, index: number, segment: string): string =>
  target
    .split("/")
    .map((old, position) => (position === index ? segment : old))
    .join("/")

const insert = (target: string, index: number, text: string): string => {
  const position = index % (target.length + 1)
  return target.slice(0, position) + text + target.slice(position)
}

const encode = (target: string, index: number): string => {
  const position = index % target.length
  const code = target.charCodeAt(position).toString(16).padStart(2, "0")
  return `${target.slice(0, position)}%${code}${target.slice(position + 1)}`
}

type Change = (line: Line) => Line

const onTarget =
  (change: (target: string) => string): Change =>
  (line) => ({ ...line, target: change(line.target) })

const change = fc.oneof(
  fc.constantFrom(...methods).map((method): Change => (line) => ({ ...line, method })),
  ...[fc.integer({ min: 1, max: 9 }), fc.constantFrom(4, 6)].map((place) =>
    fc
      .tuple(place, fc.constantFrom(...ids))
      .map(([index, id]) => onTarget((target) => replaceSegment(target, index, id))),
  ),
  fc.nat(200).map((index) => onTarget((target) => encode(target, index))),
  fc
    .tuple(fc.nat(200), fc.constantFrom("/", "//", "/./", "/../", "%2f", "\\", "\xe9", ";", "\x7f"))
    .map(([index, text]) => onTarget((target) => insert(target, index, text))),
  fc.constantFrom(...suffixes).map((suffix) => onTarget((target) => target + suffix)),
  fc.constantFrom(...authorities).map((authority) => onTarget((target) => authority + target)),
  fc.constantFrom(...targets).map((target) => onTarget(() => target)),
  fc.constant(onTarget((target) => target.toUpperCase())),
)

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

// Nothing could be compared without the project that all requests are about.
const deletesProject = ({ method, target }: Line): boolean =>
  method === "DELETE" && /\/projects\/p1[/.\\;]*$/i.test(decode(target).replace(/[?#].*/s, ""))

/** Request lines; half are as the API expects them. */
export const line: fc.Arbitrary<Line> = fc
  .tuple(
    operation,
    fc.oneof(
      { weight: 4, arbitrary: fc.constant([]) },
      { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 1 }) },
      { weight: 1, arbitrary: fc.array(change, { minLength: 2, maxLength: 3 }) },
    ),
  )
  .map(([valid, changes]) => changes.reduce((changed, apply) => apply(changed), valid))
  .filter((changed) => !deletesProject(changed))
