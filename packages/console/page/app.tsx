/** The page: the user, the current screen, and whether the server answers. */

import type { Identity } from "@tenure/client"
import { useEffect, useState } from "preact/hooks"
import { type Link, api, onLink, probe } from "./lib/api.ts"
import { Who, covers, seesAll } from "./lib/identity.ts"
import { useKeys } from "./lib/keyboard.ts"
import { type Place, go, to, usePlace } from "./lib/route.ts"
import { Announce } from "./parts/action.tsx"
import { chooseScheme, nameOf, schemes } from "./parts/environment.tsx"
import { Lost, Outages, Problem, Projects, Renew, afterwards, useLoad } from "./parts/load.tsx"
import { type Found, Palette, Shortcuts } from "./parts/palette.tsx"
import { Rail, hasSignIn } from "./parts/rail.tsx"
import { Screen } from "./parts/screen.tsx"
import { AuditScreen, ProjectAuditScreen } from "./screens/audit.tsx"
import { EventScreen } from "./screens/event.tsx"
import { EventsScreen } from "./screens/events.tsx"
import { KeysScreen } from "./screens/keys.tsx"
import { MemberScreen } from "./screens/member.tsx"
import { MembersScreen } from "./screens/members.tsx"
import { OverviewScreen } from "./screens/overview.tsx"
import { ProjectOverviewScreen } from "./screens/project-overview.tsx"
import { ProjectsScreen, SettingsScreen } from "./screens/projects.tsx"
import { SignInScreen } from "./screens/sign-in.tsx"
import { WebhookScreen } from "./screens/webhook.tsx"
import { WebhooksScreen } from "./screens/webhooks.tsx"

// How often the page asks whether the server and its database answer, in milliseconds.
const probeInterval = 15_000

// The first interval between attempts to reach an unresponsive server; each next one is twice as long.
const retryInterval = 2000

// How long a message is shown, in milliseconds.
const messageLife = 6000

// The maximum number of projects in the rail.
const maxProjects = 50

/** Messages during an outage. */
const troubles: Partial<Record<Link, string>> = {
  away: "The server does not answer. The page tries again.",
  stuck: "The database does not answer. The page tries again.",
}

const ask = () => probe.projects.list({ limit: 1 }).catch(() => {})

/** Follows whether the server answers, also while nothing else asks for anything. */
const useLink = (isKnown: boolean): Link => {
  const [link, setLink] = useState<Link>("up")
  useEffect(() => onLink(setLink), [])
  useEffect(() => {
    if (link === "out" || !isKnown) return undefined
    let isOver = false
    let stop = () => {}
    const askAgain = (millis: number): void => {
      stop = afterwards(millis, async () => {
        await ask()
        if (!isOver) askAgain(link === "up" ? probeInterval : Math.min(2 * millis, probeInterval))
      })
    }
    askAgain(link === "up" ? probeInterval : retryInterval)
    return () => {
      isOver = true
      stop()
    }
  }, [link, isKnown])
  return link
}

const useMessage = () => {
  const [message, setMessage] = useState("")
  useEffect(() => {
    const timer = setTimeout(() => setMessage(""), messageLife)
    return () => clearTimeout(timer)
  }, [message])
  return [message, setMessage] as const
}

const ProjectPart = ({ place: [project = "", tab, id] }: { readonly place: Place }) => {
  switch (tab) {
    case "members":
      return id === undefined ? (
        <MembersScreen project={project} />
      ) : (
        <MemberScreen project={project} user={id} />
      )
    case "webhooks":
      return id === undefined ? (
        <WebhooksScreen project={project} />
      ) : (
        <WebhookScreen project={project} id={id} />
      )
    case "events":
      return id === undefined ? (
        <EventsScreen project={project} />
      ) : (
        <EventScreen project={project} id={id} />
      )
    case "audit":
      return <ProjectAuditScreen project={project} />
    case "settings":
      return <SettingsScreen project={project} />
    default:
      return <ProjectOverviewScreen project={project} />
  }
}

/** A screen closed to the user. */
const Closed = (props: { readonly title: string; readonly children: string }) => (
  <Screen title={props.title}>
    <p>{props.children}</p>
  </Screen>
)

/** The project with which users of a single one begin. */
const homeOf = (who: Identity): string | undefined =>
  who.projects !== "all" && who.projects.length === 1 ? who.projects[0] : undefined

const Content = ({ place, who }: { readonly place: Place; readonly who: Identity }) => {
  const [first, ...rest] = place
  if (first === undefined) {
    const home = homeOf(who)
    if (seesAll(who)) return <OverviewScreen />
    return home === undefined ? <ProjectsScreen /> : <ProjectOverviewScreen project={home} />
  }
  if (first === "keys") {
    if (covers(who, "admin")) return <KeysScreen />
    return <Closed title="API keys">Only admins may see API keys.</Closed>
  }
  if (first === "audit") {
    if (seesAll(who)) return <AuditScreen />
    return <Closed title="Audit">Only admins of all projects may see this audit trail.</Closed>
  }
  return rest.length === 0 ? <ProjectsScreen /> : <ProjectPart place={rest} />
}

const commandsOf = (who: Identity, help: () => void): ReadonlyArray<Found> => [
  ...(seesAll(who) ? [{ name: "Overview", kind: "screen", action: to() }] : []),
  { name: "Projects", kind: "screen", action: to("projects") },
  ...(covers(who, "admin") ? [{ name: "API keys", kind: "screen", action: to("keys") }] : []),
  ...(seesAll(who) ? [{ name: "Audit", kind: "screen", action: to("audit") }] : []),
  ...schemes.map((scheme) => ({
    name: `Colours: ${nameOf(scheme)}`,
    kind: "choice",
    action: () => chooseScheme(scheme),
  })),
  { name: "Keyboard shortcuts", kind: "help", action: help },
]

/** The frame around the screens. */
const Frame = ({ place, who }: { readonly place: Place; readonly who: Identity }) => {
  const [shown, setShown] = useState<"palette" | "shortcuts" | undefined>()
  const listed = useLoad((signal) => api.projects.list({ limit: maxProjects }, { signal }))
  const projects = listed.value?.data
  const only = projects?.length === 1 ? projects[0]?.id : homeOf(who)
  const project = place[0] === "projects" && place[1] !== undefined ? place[1] : only
  const find = () => setShown("palette")
  const help = () => setShown("shortcuts")
  const close = () => setShown(undefined)
  const goTo = (tab: string) => () => {
    if (project === undefined) go("projects")
    else go("projects", project, tab)
  }
  useKeys({
    go: {
      o: () => go(),
      p: () => go("projects"),
      m: goTo("members"),
      w: goTo("webhooks"),
      e: goTo("events"),
      a: goTo("audit"),
    },
    find,
    help,
  })
  return (
    <Projects.Provider value={listed}>
      <div class="frame">
        <Rail
          place={place}
          who={who}
          projects={projects}
          hasMore={typeof listed.value?.next === "string"}
          find={find}
          help={help}
        />
        <Content key={to(...place)} place={place} who={who} />
      </div>
      {shown === "palette" && (
        <Palette
          commands={commandsOf(who, help)}
          projects={projects ?? []}
          project={project}
          close={close}
        />
      )}
      {shown === "shortcuts" && <Shortcuts close={close} />}
    </Projects.Provider>
  )
}

const Outside = ({ reload }: { readonly reload: () => void }) =>
  hasSignIn ? (
    <SignInScreen onDone={reload} />
  ) : (
    <Screen title="Signed out">
      <p>You are not signed in any more. Sign in to the application, and open the page again.</p>
    </Screen>
  )

/** The page. */
export const App = () => {
  const place = usePlace()
  const [message, announce] = useMessage()
  const identity = useLoad(async (signal) => (await api.identity.get({}, { signal })).data)
  const link = useLink(identity.value !== undefined)
  const who = link === "out" ? undefined : identity.value
  const [outages, setOutages] = useState(0)
  const trouble = troubles[link]
  const isLost = trouble !== undefined
  useEffect(() => {
    if (isLost) return () => setOutages((before) => before + 1)
    return undefined
  }, [isLost])
  useEffect(() => {
    if (outages > 0) identity.reload()
  }, [outages])

  return (
    <Announce.Provider value={announce}>
      {isLost && (
        <p class="away" role="alert">
          {trouble}
        </p>
      )}
      {link === "out" && <Outside reload={identity.reload} />}
      {who !== undefined && (
        <Who.Provider value={who}>
          <Outages.Provider value={outages}>
            <Renew.Provider value={() => setOutages((before) => before + 1)}>
              <Lost.Provider value={isLost}>
                <Frame place={place} who={who} />
              </Lost.Provider>
            </Renew.Provider>
          </Outages.Provider>
        </Who.Provider>
      )}
      {link === "up" && who === undefined && identity.error !== undefined && (
        <main>
          <Problem error={identity.error} />
        </main>
      )}
      <p class="message" role="status">
        {message}
      </p>
    </Announce.Provider>
  )
}
