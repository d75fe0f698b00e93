/** Search words missing on the page they should find. */

/** The words, by the page's file. */
const terms: Readonly<Record<string, string>> = {
  "docs/memberships.md":
    "trial, free trial, renew, renewal, subscription, plan, seat, seats, license, cancel, cancellation, suspend, pause, lifetime, refund, month, monthly, last day, end of month, leap year, time zone, timezone",
  "docs/ends.md":
    "expire, expiry, expiration, grace, grace period, cron, cron job, scheduled job, timer, dunning, renewal notice",
  "docs/hosts/better-auth.md": "trial, free trial, sign-up, login, seat",
  "docs/hosts/stripe.md":
    "subscription, refund, cancel, renew, renewal, grace period, payment, billing, chargeback",
}

/** Words, and guides: one must be among the first results. Checked after each build. */
export const expected: Readonly<Record<string, ReadonlyArray<string>>> = {
  trial: ["/memberships"],
  lifetime: ["/memberships"],
  month: ["/memberships"],
  "last day": ["/memberships"],
  "time zone": ["/memberships", "/concepts"],
  renew: ["/memberships"],
  subscription: ["/hosts/stripe"],
  seat: ["/memberships"],
  cancel: ["/memberships"],
  refund: ["/hosts/stripe"],
  grace: ["/ends"],
  expire: ["/ends"],
  cron: ["/ends"],
}

const headings = /(?=<h[1-3] )/
const inHeading = /^<h[1-3] .*?<\/h[1-3]>/s
const codeBlock = /<pre.*?<\/pre>/gs
// The search would read their names as words.
const entity = /&(?:quot|lt|gt|amp|#39);/g

// As typedoc-plugin-markdown writes them.
const member = /<td><a id="[^"]*"><\/a> <code>(\w+)<\/code>|<h[56] id="[^"]*"[^>]*>(\w+)\(\)/g

/** Returns each export's name, description and member names. The page itself has the types. */
const namesOf = (html: string): string =>
  html
    .split(headings)
    // Such as "Interfaces".
    .filter((section) => !section.startsWith("<h2"))
    .map((section) => {
      const [heading = ""] = inHeading.exec(section) ?? []
      const [description = ""] = section.slice(heading.length).split(/(?=<h[4-6] )/)
      const prose = (description.match(/<p>(?!Defined in:).*?<\/p>/gs) ?? []).join("")
      const names = [...section.matchAll(member)].map(([, property, method]) => property ?? method)
      return `${heading}${prose}<p>${[...new Set(names)].join(" ")}</p>`
    })
    .join("")

// Guides name some functions in their examples alone.
const ofGuide = /^docs\/(?:hosts\/)?[\w-]+\.md$/
const ofModule = /^docs\/reference\/(?!http|events)/

/** Returns a page's search text: the page, with its additional words below the title. */
export const textOf = (file: string, html: string): string => {
  const read = html.replaceAll(entity, " ")
  if (ofModule.test(file)) return namesOf(read)
  const added = terms[file]
  const text = ofGuide.test(file) ? read : read.replaceAll(codeBlock, "")
  return added === undefined ? text : text.replace("</h1>", `</h1><p>${added}</p>`)
}

/** How the search reads a question. These options are sent to the browser, so they use nothing else. */
export const options = {
  options: {
    /** Leaves out the words in nearly every section, because they would enlarge the index by 25 %. */
    processTerm: (term: string): string | undefined => {
      const word = term.toLowerCase()
      const common =
        /^(?:an?|and|are|as|at|be|by|does|each|for|has|have|if|in|is|it|its|of|on|or|s|so|that|the|them|this|to|was|which|with|your)$/
      return common.test(word) ? undefined : word
    },
  },
  searchOptions: {
    // Guides have no folder. The reference mostly repeats words explained in guides.
    boostDocument: (id: string): number => {
      if (id.startsWith("/reference/")) return 0.2
      return id.lastIndexOf("/") === 0 ? 2 : 1
    },
  },
}
