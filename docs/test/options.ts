/** The options on their page: from their definitions, and the doc comments there. */

import { membershipPluginOptions as betterAuth } from "@tenure/better-auth"
import { consoleOptions } from "@tenure/console"
import { routerOptions as routes } from "@tenure/core/http-router"
import type { Setting } from "@tenure/core/internal"
import { createTenureOptions, flushOptions as flush } from "@tenure/core/internal"
import { embeddedOptions as embedded } from "@tenure/embedded"
import { middlewareOptions as express } from "@tenure/express"
import { pluginOptions as fastify } from "@tenure/fastify"
import { fetchHandlerOptions as fetch } from "@tenure/fetch"
import { memoryOptions as memory } from "@tenure/memory"
import {
  nodeHandlerOptions,
  orderOptions,
  proxyTransportOptions,
  serverOptions,
  verifyOptions,
} from "@tenure/node-http"
import {
  connectionOptions,
  postgresOptions as postgres,
  serverOptions as postgresServer,
} from "@tenure/postgres"
import { redisLimitsOptions as redis } from "@tenure/redis"
import { stripeWebhookOptions as stripe } from "@tenure/stripe"
import * as Result from "effect/Result"
import { filesOf, read } from "./examples.ts"

type AnySetting = Setting.Setting<unknown, unknown>

interface Options {
  readonly fields: Setting.SettingFields
}

/** A function that has options. */
export interface Section {
  readonly title: string
  /** Where the options are defined, a pattern for paths in packages/. */
  readonly sources: string
  readonly options: Options
  readonly note: string | undefined
}

/** Describes an exported function's options. */
const of = (
  name: string,
  module: string,
  sources: string,
  options: Options,
  note?: string,
): Section => ({
  title: `\`${name}\` of ${module.startsWith("tenure") ? `\`${module}\`` : module}`,
  sources,
  options,
  note,
})

const inNode = "node-http/src/**/*.ts"

const sections: ReadonlyArray<Section> = [
  of(
    "createTenure",
    "tenure",
    "core/src/**/!(http-router).ts",
    createTenureOptions,
    "`tenureLayer` of `tenure/effect` takes the same but `stores` and `logger`.",
  ),
  of("flush", "a Tenure", "core/src/webhooks/dispatcher.ts", flush),
  of("memory", "tenure/memory", "memory/src/**/*.ts", memory),
  of(
    "postgres",
    "tenure/postgres",
    "postgres/src/**/*.ts",
    connectionOptions,
    `\`layer\`, for hosts with a client of their own, takes ${Object.keys(postgres.fields)
      .map((name) => `\`${name}\``)
      .join(", ")}.`,
  ),
  of(
    "servers",
    "`postgres({ servers })`",
    "postgres/src/cells.ts",
    postgresServer,
    "Beside `servers`, it takes `cells`, and the options above but `url` and `listenUrl`: see [several servers](internals/scaling.md#several-servers).",
  ),
  of(
    "embedded",
    "tenure/embedded",
    "{embedded,postgres}/src/**/*.ts",
    embedded,
    "`client`, for Effect hosts, takes `path` and `durable`.",
  ),
  of("redisLimits", "tenure/redis", "redis/src/**/*.ts", redis),
  of("membershipMiddleware", "tenure/express", "express/src/**/*.ts", express),
  of(
    "membershipPlugin",
    "tenure/fastify",
    "fastify/src/**/*.ts",
    fastify,
    "Besides `tenure`, and the options of `register`.",
  ),
  of("fetchHandler", "tenure/fetch", "fetch/src/**/*.ts", fetch),
  of("toNodeHandler", "tenure/node", inNode, nodeHandlerOptions()),
  of("tenureConsole", "tenure/console", "console/src/index.ts", consoleOptions),
  of("stripeWebhook", "tenure/stripe", "stripe/src/index.ts", stripe),
  of("membershipPlugin", "tenure/better-auth", "better-auth/src/index.ts", betterAuth),
  of("serve", "tenure/node", inNode, serverOptions),
  of("orderRequests", "tenure/node", inNode, orderOptions),
  of("proxyTransport", "tenure/node", "node-http/src/proxy-transport.ts", proxyTransportOptions),
  of("verifyWebhook", "tenure/node", inNode, verifyOptions),
  of("tenureRouterLayer", "tenure/http-router", "core/src/http/http-router.ts", routes()),
]

// A doc comment, the name of an option, and its definition, or the type of `stores`.
const documented =
  /\/\*\*((?:(?!\*\/).)*)\*\/\s*(?:readonly )?(\w+):\s*(?:Setting\.|databaseUrlOption|StoreLayers<)/gs

/** The text of a doc comment in one line. */
const textOf = (comment: string): string =>
  comment
    .replaceAll(/\n[ \t]*\* ?/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim()

/** Reads the definitions' doc comments, by the option's name. */
const readComments = async (sources: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> => {
  const comments = new Map<string, Set<string>>()
  // Fields of requests have names of options, too.
  const files = (await filesOf(`packages/${sources}`)).filter(
    (file) => !/\/src\/api\/|\/inputs\.ts$/.test(file),
  )
  for (const file of files) {
    for (const [, comment = "", name = ""] of read(file).matchAll(documented)) {
      comments.set(name, (comments.get(name) ?? new Set()).add(textOf(comment)))
    }
  }
  return comments
}

/** Writes a default as it is written in code, if it can be. */
const printed = (value: unknown): string | undefined => {
  if (Array.isArray(value)) return `[${value.map(printed).join(", ")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (Object.getPrototypeOf(value) !== Object.prototype) return undefined
  const parts = Object.entries(value).map(([name, part]) => `${name}: ${printed(part)}`)
  return parts.length === 0 ? undefined : `{ ${parts.join(", ")} }`
}

/** An option with all that the page says about it. */
export interface Entry {
  readonly setting: AnySetting
  /** Such as `webhooks.timeout`. */
  readonly name: string
  /** The doc comment, which ends with the default if there is one. */
  readonly text: string
  readonly default: string | undefined
  readonly expected: string
  readonly isRequired: boolean
  readonly entries: ReadonlyArray<Entry>
}

type Comments = Awaited<ReturnType<typeof readComments>>

/** An option's doc comment. If several have its name, the one that tells this default. */
const commentOf = (comments: Comments, name: string, value: string | undefined): string => {
  const [first = "", ...others] = comments.get(name) ?? []
  if (others.length === 0) return first
  return [first, ...others].find((text) => text.includes(`Default: \`${value}\``)) ?? ""
}

const entriesOf = (
  fields: Setting.SettingFields,
  comments: Comments,
  prefix = "",
): ReadonlyArray<Entry> =>
  Object.entries<AnySetting>(fields).map(([name, setting]) => ({
    setting,
    name: `${prefix}${name}`,
    text: commentOf(comments, name, printed(setting.default)),
    default: printed(setting.default),
    expected: setting.expected,
    isRequired: Result.isFailure(setting.read(undefined, name)),
    entries: entriesOf(setting.fields ?? {}, comments, `${prefix}${name}.`),
  }))

/** A function with its options. */
export interface Filled extends Section {
  readonly entries: ReadonlyArray<Entry>
}

/** Reads a section's options. */
export const fill = async (section: Section): Promise<Filled> => ({
  ...section,
  entries: entriesOf(section.options.fields, await readComments(section.sources)),
})

/** All options, by section. */
export const allOptions = (): Promise<ReadonlyArray<Filled>> => Promise.all(sections.map(fill))

/** All options, with those that options have. */
export const flatten = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> =>
  entries.flatMap((entry) => [entry, ...flatten(entry.entries)])

/** What a value may be. The page says once how a duration is written. */
const takesOf = (expected: string): string => expected.replace(/(duration.*), such as ".*"$/, "$1")

const describe = ({ entries, expected, isRequired, text }: Entry): string => {
  const necessity = isRequired ? " Required." : ""
  const takes = entries.length === 0 ? ` Takes ${takesOf(expected)}.` : ""
  return `${text}${necessity}${takes}`
}

/** Writes the entries' lines. One that an earlier entry describes names that one. */
const linesOf = (
  entries: ReadonlyArray<Entry>,
  place: string,
  described: Map<string, string>,
  indent = "",
): ReadonlyArray<string> =>
  entries.flatMap((entry) => {
    const text = describe(entry)
    const earlier = described.get(text)
    described.set(text, earlier ?? (entry.name.includes(".") ? `\`${entry.name}\`` : place))
    return [
      `${indent}- **\`${entry.name}\`**: ${earlier === undefined ? text : `As for ${earlier}.`}`,
      ...linesOf(entry.entries, place, described, `${indent}  `),
    ]
  })

const introduction = `# Options

Every option, with its default and range, and at the end the [variables](#variables-of-the-bundled-server) of the bundled server.

An invalid or unknown option is an \`InvalidInput\` error, which names the option, such as \`webhooks.retrySchedule[2]\`, and says what is valid. A duration is a text such as \`"15 seconds"\`, a \`Duration\` of Effect, or a number of milliseconds.

This page is generated from the definitions: \`npx vitest run --config vitest.workspace.ts docs/test/options --update\`.
`

/** Writes the options on the page. */
export const optionsPart = async (): Promise<string> => {
  const described = new Map<string, string>()
  const parts = (await allOptions()).flatMap(({ entries, note, title }) => [
    `## ${title}\n`,
    ...(note === undefined ? [] : [`${note}\n`]),
    `${linesOf(entries, title, described).join("\n")}\n`,
  ])
  return [introduction, ...parts].join("\n")
}
