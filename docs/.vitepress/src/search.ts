/** Words that readers search for, and that the page they need does not use. */

/** The words, by the file of the page. */
const terms: Readonly<Record<string, string>> = {
  "docs/memberships.md":
    "trial, free trial, renew, renewal, subscription, plan, seat, seats, license, cancel, cancellation, suspend, pause, lifetime, refund",
  "docs/ends.md":
    "expire, expiry, expiration, grace, grace period, cron, cron job, scheduled job, timer, dunning, renewal notice",
  "docs/hosts/better-auth.md": "trial, free trial, sign-up, login, seat",
  "docs/hosts/stripe.md":
    "subscription, refund, cancel, renew, renewal, grace period, payment, billing, chargeback",
}

/** Words, and the guides of which one must be among the first results. Checked after each build. */
export const expected: Readonly<Record<string, ReadonlyArray<string>>> = {
  trial: ["/memberships"],
  renew: ["/memberships"],
  subscription: ["/hosts/stripe"],
  seat: ["/memberships"],
  cancel: ["/memberships"],
  refund: ["/hosts/stripe"],
  grace: ["/ends"],
  expire: ["/ends"],
  cron: ["/ends"],
}

/** Adds the words of a page to what the search reads of it, below its title. */
export const withTerms = (file: string, html: string): string => {
  const added = terms[file]
  return added === undefined ? html : html.replace("</h1>", `</h1><p>${added}</p>`)
}

/** How the search reads a question. These options are sent to the browser, so they use nothing else. */
export const options = {
  searchOptions: {
    // Guides have no folder. Most of the reference repeats words that they explain.
    boostDocument: (id: string): number => {
      if (id.startsWith("/reference/")) return 0.2
      return id.lastIndexOf("/") === 0 ? 2 : 1
    },
  },
}
