/**
 * Names for what a store mints: ids, secrets, tokens, cursors. They replace the values in its answers, and
 * are replaced by them in requests, so that all stores get the same requests, and have to give the same answers.
 */

/** A value that a store has minted, unlike any other store's. */
const minted =
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|whsec_[\w+/=-]+|whpk_[\w+/=-]+|tkt_[\w-]+/gi

const sequence = /(?<="sequence":)\d+/g

const unknownId = "01a202e3-1074-7765-acfd-b456e9c1556c"

/** Adds a path's project to a kind. */
const inProject = (kind: string, path: string): string => {
  const [, project] = /^\/v2\/projects\/(p\d)\//.exec(path) ?? []
  return project === undefined ? kind : `${kind}-${project}`
}

/** The kind of an id in a path's data: its last part but one names it. */
const kindAt = (path: string): string => {
  if (/\/api-keys/.test(path)) return "key"
  if (/\/(events|bulk-extensions)(\/|\?|$)/.test(path)) return inProject("event", path)
  return /\/(webhooks|health)(\/|\?|$)/.test(path) ? inProject("webhook", path) : "uuid"
}

const kinds: Readonly<Record<string, string>> = {
  request_id: "request",
  event_id: "event",
  webhook_id: "webhook",
  key_id: "key",
  secret: "secret",
  token: "token",
  ticket: "ticket",
}

/** The kind of a list's cursors. */
const cursorAt = (path: string): string => {
  if (path.startsWith("/v2/audit")) return "cursor-others"
  if (path.startsWith("/v2/api-keys")) return "cursor-keys"
  if (path.includes("/history")) return "cursor-history"
  if (path.includes("/audit")) return "cursor-audit"
  if (path.includes("/deliveries")) return "cursor-deliveries"
  if (path.includes("/events")) return "cursor-feed"
  if (path.includes("ending_before=")) return "cursor-ending"
  return path.includes("/memberships") ? "cursor-memberships" : "cursor-projects"
}

/** The names of one store's values. */
export class Names {
  private readonly names = new Map<string, string>()
  private readonly values = new Map<string, Array<string>>()
  /** The cursors in the last request, which an error may repeat. Short ones are alike in all stores. */
  private sent: ReadonlyArray<string> = []
  private readonly start: number

  constructor(start: number) {
    this.start = start
  }

  /** Replaces the values in a text that have names, and removes the others. */
  known(text: string): string {
    return text.replaceAll(minted, (value) => this.names.get(value) ?? "").replaceAll(sequence, "")
  }

  private valuesOf(kind: string): Array<string> {
    const known = this.values.get(kind)
    if (known !== undefined) return known
    const values: Array<string> = []
    this.values.set(kind, values)
    return values
  }

  /** Gives a value a name. One that has a name already gets another. */
  private add(kind: string, value: string): string {
    const values = this.valuesOf(kind)
    const name = `<${kind} ${values.length}>`
    values.push(value)
    this.names.set(value, name)
    return name
  }

  /** Replaces the values in a text by their names. */
  hide(text: string, kind: string): string {
    const known = this.sent.reduce(
      (shown, cursor) => shown.replaceAll(cursor, "<cursor>"),
      text.replaceAll(sequence, "0"),
    )
    return known.replaceAll(minted, (value) => {
      // A path in a request may have an id in capitals.
      const name = this.names.get(value) ?? this.names.get(value.toLowerCase())
      return name ?? this.add(kind, value)
    })
  }

  /** Replaces the values in what a request to a path was answered. */
  hideAll(value: unknown, path: string, field = ""): unknown {
    if (Array.isArray(value)) return value.map((item: unknown) => this.hideAll(item, path, field))
    if (typeof value === "object" && value !== null) {
      if ("token" in value && "id" in value) this.valuesOf("issued").push(String(value.id))
      // A bulk extension has the id of its event.
      if ("extend_by" in value && "id" in value) {
        this.valuesOf(inProject("bulk", path)).push(String(value.id))
      }
      // A store may record that a pause has ended as soon as anybody asks.
      const isResumption = "action" in value && value.action === "resumed"
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) =>
          isResumption && name === "at" ? [name, "<time>"] : [name, this.hideAll(item, path, name)],
        ),
      )
    }
    // A sequence grows with every change, by how much is up to the store.
    if (field === "sequence") return "<sequence>"
    // Key uses are recorded beside the requests, within a second.
    if (field === "last_used_at") return "<time>"
    if (typeof value !== "string") return value
    // The same place may have many cursors, and a store another one for each page.
    if (field === "next") {
      this.add("cursor", value)
      return this.add(inProject(cursorAt(path), path), value)
    }
    if (field === "token") return this.names.get(value) ?? this.add("token", value)
    const kind = field === "id" ? kindAt(path) : (kinds[field] ?? "uuid")
    return this.hide(value, /^(event|webhook)$/.test(kind) ? inProject(kind, path) : kind)
  }

  private valueAt(kind: string, index: number): string {
    const lower = kind.toLowerCase()
    const values = this.valuesOf(lower)
    // The newest cursors, because pages that are followed at once are the usual ones.
    const wanted = index % Math.max(1, values.length)
    const value = kind.startsWith("cursor") ? values.at(-1 - wanted) : values[wanted]
    return (kind === lower ? value : value?.toUpperCase()) ?? unknownId
  }

  /**
   * Replaces the names in a request's text by their values. A list without a cursor yet is read
   * from its beginning.
   */
  showPath(text: string): string {
    const shown = this.show(text)
    this.sent = [...this.values]
      .filter(([kind]) => kind.startsWith("cursor"))
      .flatMap(([, values]) => values)
      .filter((value) => value.length > 12 && shown.includes(value))
      // An error repeats 80 refused characters, which may be a "~" and the cursor. Cursors begin alike.
      .flatMap((value) => [value, value.slice(0, 80), value.slice(0, 79)])
      .toSorted((one, other) => other.length - one.length)
    return shown
  }

  /** The same for any other text. */
  show(text: string): string {
    const known = text.replace(
      /([?&])after=\{(cursor[\w-]*):\d+\}(&|$)/,
      (found, before: string, kind: string, after: string) => {
        if (this.valuesOf(kind).length > 0) return found
        return after === "" ? "" : before
      },
    )
    return known.replaceAll(/\{([A-Za-z0-9-]+):(-?\d+)\}/g, (_, kind: string, digits: string) => {
      const number = Number(digits)
      if (kind === "ms") return String(this.start + number)
      if (kind === "iso") return new Date(this.start + number).toISOString()
      return this.valueAt(kind, number)
    })
  }
}
