/** The page: the user, the current screen, and whether the server answers. */

import type { Identity } from "@tenure/client"
import { useContext, useEffect, useState } from "preact/hooks"
import { type Link, api, onLink, probe, signOut } from "./lib/api.ts"
import { Who, covers, seesAll } from "./lib/identity.ts"
import { type Place, to, usePlace } from "./lib/route.ts"
import { Announce } from "./parts/action.tsx"
import { SchemeChoice } from "./parts/environment.tsx"
import { Lost, Outages, Problem, messageOf, useLoad } from "./parts/load.tsx"
import { Screen } from "./parts/screen.tsx"
import { AuditScreen, ProjectAuditScreen } from "./screens/audit.tsx"
import { EventScreen } from "./screens/event.tsx"
import { EventsScreen } from "./screens/events.tsx"
import { KeysScreen } from "./screens/keys.tsx"
import { MemberScreen } from "./screens/member.tsx"
import { MembersScreen } from "./screens/members.tsx"
import { OverviewScreen } from "./screens/overview.tsx"
import { ProjectsScreen } from "./screens/projects.tsx"
import { SignInScreen } from "./screens/sign-in.tsx"
import { WebhookScreen } from "./screens/webhook.tsx"
import { WebhooksScreen } from "./screens/webhooks.tsx"

// The interval between attempts to reach an unresponsive server, in milliseconds.
const probeInterval = 2000

// How long a message is shown, in milliseconds.
const messageLife = 6000

/** Messages during an outage. */
const troubles: Partial<Record<Link, string>> = {
  away: "The server does not answer. The page tries again.",
  stuck: "The database does not answer. The page tries again.",
}

/** Whether users sign in here, and not in the host. */
const hasSignIn = "signIn" in document.documentElement.dataset

const useLink = (): Link => {
  const [link, setLink] = useState<Link>("up")
  useEffect(() => onLink(setLink), [])
  useEffect(() => {
    if (!(link in troubles)) return undefined
    const timer = setInterval(() => void probe.identity.get().catch(() => {}), probeInterval)
    return () => clearInterval(timer)
  }, [link])
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
    default:
      return id === undefined ? (
        <MembersScreen project={project} />
      ) : (
        <MemberScreen project={project} user={id} />
      )
  }
}

/** A screen closed to the user. */
const Closed = (props: { readonly title: string; readonly children: string }) => (
  <Screen title={props.title}>
    <p>{props.children}</p>
  </Screen>
)

const Content = ({ place, who }: { readonly place: Place; readonly who: Identity }) => {
  const [first, ...rest] = place
  if (first === undefined && seesAll(who)) return <OverviewScreen />
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

const links = (who: Identity) => [
  ...(seesAll(who) ? [["Overview", to()] as const] : []),
  ["Projects", to("projects")] as const,
  ...(covers(who, "admin") ? [["API keys", to("keys")] as const] : []),
  ...(seesAll(who) ? [["Audit", to("audit")] as const] : []),
]

const SignOut = () => {
  const announce = useContext(Announce)
  const signOutAndReload = async () => {
    try {
      await signOut()
      location.reload()
    } catch (fault) {
      announce(`You are still signed in. ${messageOf(fault)}`)
    }
  }
  return (
    <button type="button" class="small" onClick={signOutAndReload}>
      Sign out
    </button>
  )
}

const Header = ({ place, who }: { readonly place: Place; readonly who: Identity | undefined }) => (
  <header>
    <a class="brand" href={to()}>
      Tenure
    </a>
    {who !== undefined && (
      <nav aria-label="Main">
        {links(who).map(([name, href]) => (
          <a
            key={href}
            href={href}
            aria-current={to(...place.slice(0, 1)) === href ? "page" : undefined}
          >
            {name}
          </a>
        ))}
      </nav>
    )}
    <div class="user">
      {who !== undefined && (
        <span title={who.key_id}>{who.read_only ? `${who.role}, read-only` : who.role}</span>
      )}
      <SchemeChoice />
      {who !== undefined && hasSignIn && <SignOut />}
    </div>
  </header>
)

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
  const link = useLink()
  const [message, announce] = useMessage()
  const identity = useLoad(async (signal) => (await api.identity.get({}, { signal })).data)
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
      <Header place={place} who={who} />
      {isLost && (
        <p class="away" role="alert">
          {trouble}
        </p>
      )}
      {link === "out" && <Outside reload={identity.reload} />}
      {who !== undefined && (
        <Who.Provider value={who}>
          <Outages.Provider value={outages}>
            <Lost.Provider value={isLost}>
              <Content key={to(...place)} place={place} who={who} />
            </Lost.Provider>
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
