/** Compares how hosts reply to the same bytes. */

import type { Exchange, Reply } from "./connection.ts"
import { type Shape, faultsOf, shapeOf } from "./shape.ts"
import { adminToken, token } from "./vocabulary.ts"

export interface HostReply {
  readonly host: string
  readonly reply: Reply
}

/** Two answers that differ, one from the first host. */
interface Difference {
  readonly host: string
  readonly exchange: Exchange
  readonly index: number
  /** What the host answered to the request before it. */
  readonly before: Shape | undefined
  readonly expected: Shape | undefined
  readonly actual: Shape | undefined
}

/** A difference by nature, and why it is one. */
interface Exception {
  readonly reason: string
  readonly holds: (difference: Difference) => boolean
}

const textOf = ({ packets }: Exchange): string => Buffer.concat(packets).toString("latin1")

const isOwn = (shape: Shape | undefined, ...statuses: ReadonlyArray<number>): boolean =>
  shape !== undefined && shape.envelope === undefined && statuses.includes(shape.status)

const isRefused = (shape: Shape | undefined): boolean =>
  shape?.code === "MALFORMED_REQUEST" || shape?.code === "REQUEST_HEADERS_TOO_LARGE"

/** Whether an answer has this code, or may have it: one to HEAD has only a status. */
const mayBe = ({ exchange, expected, index }: Difference, status: number, code: string): boolean =>
  expected?.code === code || (exchange.methods[index] === "HEAD" && expected?.status === status)

/** The path in a web request's URL. */
const normalizedPath = (target: string): string | undefined =>
  URL.parse(/^[a-z]+:/i.test(target) ? target : `http://localhost${target}`)?.pathname

/** Every difference that is not a defect. */
const exceptions: ReadonlyArray<Exception> = [
  {
    reason: "The host itself answers paths outside the API, each in its own way.",
    holds: (difference) =>
      mayBe(difference, 404, "ROUTE_NOT_FOUND") &&
      isOwn(difference.actual, 400, 404, 405, 414, 415),
  },
  {
    reason: "The host answers paths outside the API without waiting for the body.",
    holds: (difference) =>
      mayBe(difference, 400, "MALFORMED_REQUEST") && isOwn(difference.actual, 404, 414, 415),
  },
  {
    reason: "Fastify's router decodes the prefix, and removes the scheme and any host.",
    holds: ({ actual, exchange, expected, host }) =>
      host === "Fastify" &&
      expected?.status === 404 &&
      actual !== undefined &&
      / (\/[^/\s]*%|[a-z]+:\/)\S* HTTP\//i.test(textOf(exchange)),
  },
  {
    reason: "Fastify closes the connection after a body that it refuses for a path of its own.",
    holds: ({ actual, before, host }) =>
      host === "Fastify" && actual === undefined && isOwn(before, 400, 404, 413, 415),
  },
  {
    reason: "The URL of a web request is normalized, or refused.",
    holds: ({ actual, exchange, host, index }) => {
      const target = exchange.targets[index] ?? ""
      const path = normalizedPath(target)
      return (
        host === "Hono" &&
        path !== target.replace(/[?#].*/, "") &&
        (isOwn(actual, 400, 404) ||
          actual?.envelope?.includes(`path: ${JSON.stringify(path)}`) === true)
      )
    },
  },
  {
    reason: "A web request joins repeated fields, so that one field with a comma looks repeated.",
    holds: ({ actual, exchange, host }) =>
      host === "Hono" && actual?.status === 400 && textOf(exchange).includes(", Bearer"),
  },
  {
    reason:
      "Express's router ignores the case of the mount path; that of Express 4 ignores a second slash after it, and takes a backslash for one.",
    holds: ({ actual, expected, host }) =>
      host.startsWith("Express") &&
      expected?.code === "ROUTE_NOT_FOUND" &&
      /path: "[^"]*\/(MEMBERS\/|members(\/|\\\\)\/)/.test(actual?.envelope ?? ""),
  },
  {
    reason: "Effect's server closes the connection after a body that is too long.",
    holds: ({ actual, before, exchange, host }) =>
      host === "Effect" &&
      before !== undefined &&
      actual === undefined &&
      textOf(exchange).length > 65_536,
  },
  {
    reason: "A host answers once a body is too long, whatever is wrong behind that.",
    holds: ({ actual, exchange, expected }) =>
      actual?.code === "PAYLOAD_TOO_LARGE" &&
      isRefused(expected) &&
      textOf(exchange).length > 65_536,
  },
  {
    reason: "Real rate limits may refuse a request in one host, and not yet in another.",
    holds: ({ actual, before, expected }) =>
      [actual, before, expected].some((shape) => shape?.status === 429),
  },
  {
    reason: "What Node's parser rejects, Node answers; only `serve` has an envelope for it.",
    holds: ({ actual, expected }) => isRefused(expected) && isOwn(actual, expected?.status ?? 0),
  },
  {
    reason: "Node's answer to that replaces those to requests before it that are not sent yet.",
    holds: ({ actual, exchange }) => !exchange.isValid && isOwn(actual, 400, 431),
  },
  {
    reason: "Node closes the connection after what its parser rejects, and after a CONNECT.",
    holds: ({ actual, exchange }) => !exchange.isValid && actual === undefined,
  },
  {
    reason: "Only `serve` answers before a body that waits for 100 Continue, and then closes.",
    holds: ({ before, exchange, expected }) =>
      before !== undefined &&
      expected === undefined &&
      textOf(exchange).includes("Expect: 100-continue"),
  },
  {
    reason: "Effect's server refuses a chunked body with an upgrade.",
    holds: ({ actual, exchange, host }) =>
      host === "Effect" && isOwn(actual, 411) && textOf(exchange).includes("Upgrade:"),
  },
  {
    reason: "Node answers an unknown expectation; only `serve` ignores it.",
    holds: ({ actual, exchange }) =>
      isOwn(actual, 417) && textOf(exchange).includes("Expect: something"),
  },
  {
    reason: "Only `serve` insists on exactly one Host header.",
    holds: ({ actual, exchange, expected }) =>
      // An answer to HEAD shows no code.
      expected?.status === 400 &&
      actual !== undefined &&
      textOf(exchange).split("\r\nHost:").length - 1 !== exchange.methods.length,
  },
  {
    reason: "A web request has a URL, which the Host header must be valid for.",
    holds: ({ actual, exchange, host }) =>
      ["Hono", "Effect"].includes(host) &&
      isOwn(actual, 400, 404) &&
      /\r\nHost:(?! localhost\r)/.test(textOf(exchange)),
  },
  {
    reason: "GET and HEAD have no body in a web request, so that none is missing.",
    holds: ({ exchange, host, index }) =>
      host === "Hono" && exchange.isCut && ["GET", "HEAD"].includes(exchange.methods[index] ?? ""),
  },
  {
    reason: "A host has kept a key with a request that another one has refused, by nature.",
    holds: ({ actual, expected }) =>
      [actual, expected].some((shape) => shape?.code === "IDEMPOTENCY_MISMATCH"),
  },
  {
    reason: "A request that is cut off may get no answer.",
    holds: ({ actual, exchange, expected }) =>
      exchange.isCut &&
      [actual, expected].every((shape) => shape === undefined || shape.status >= 400),
  },
]

const isSame = (one: Shape | undefined, other: Shape | undefined): boolean =>
  one?.status === other?.status && one?.envelope === other?.envelope

const describe = (shape: Shape | undefined): string =>
  shape === undefined ? "no answer" : `${shape.status} ${shape.envelope ?? "without an envelope"}`

const replyFaults = (
  { isValid }: Exchange,
  { answers, end, rest }: Reply,
): ReadonlyArray<string> => [
  ...(end === "late" ? ["no answer in time"] : []),
  ...(isValid && rest.length > 0
    ? [`bytes that are no answer: ${rest.toString("latin1").slice(0, 80)}`]
    : []),
  ...answers.flatMap((answer) => [token, adminToken].flatMap((one) => faultsOf(answer, one))),
]

const compareTwo = (
  exchange: Exchange,
  first: Reply,
  { host, reply }: HostReply,
): ReadonlyArray<string> => {
  const expectations = first.answers.map(shapeOf)
  const shapes = reply.answers.map(shapeOf)
  return exchange.methods.flatMap((_method, index) => {
    const expected = expectations[index]
    const actual = shapes[index]
    const difference = { host, exchange, index, before: shapes[index - 1], expected, actual }
    if (isSame(expected, actual) || exceptions.some(({ holds }) => holds(difference))) return []
    return [`${host}: answer ${index + 1} is ${describe(actual)}, not ${describe(expected)}`]
  })
}

/** Returns what is wrong with the replies, or an empty list. The first host is the measure. */
export const compare = (
  exchange: Exchange,
  replies: ReadonlyArray<HostReply>,
): ReadonlyArray<string> => {
  const [first, ...others] = replies
  if (first === undefined) return []
  return [
    ...replies.flatMap(({ host, reply }) =>
      replyFaults(exchange, reply).map((fault) => `${host}: ${fault}`),
    ),
    ...others.flatMap((other) => compareTwo(exchange, first.reply, other)),
  ]
}
