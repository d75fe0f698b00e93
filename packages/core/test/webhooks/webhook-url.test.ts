import * as Result from "effect/Result"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type WebhookUrlRules,
  decodeWebhookUrl,
  maxWebhookUrlLength,
} from "../../src/webhooks/transport.ts"

const lenient: WebhookUrlRules = {
  requireHttps: false,
  sendsHttpToNames: true,
  permitsHost: () => true,
}

/** Returns the URL, or the message of the error. */
const outcome = (input: unknown, rules: Partial<WebhookUrlRules> = {}): string =>
  Result.match(decodeWebhookUrl(input, { ...lenient, ...rules }), {
    onSuccess: (url) => url,
    onFailure: ({ message }) => message,
  })

const accepts = (input: unknown, rules?: Partial<WebhookUrlRules>): boolean =>
  Result.isSuccess(decodeWebhookUrl(input, { ...lenient, ...rules }))

/** Returns a URL with this many characters. */
const urlOf = (length: number): string => "https://receiver.example/".padEnd(length, "a")

const webUrls = fc.webUrl({
  validSchemes: ["http", "https"],
  withFragments: true,
  withQueryParameters: true,
})
const addresses = fc.oneof(fc.ipV4(), fc.constant("[2606:4700::1111]"))

describe("the URL of a webhook", () => {
  it("is returned unchanged", () => {
    fc.assert(fc.property(webUrls, (url) => void expect(outcome(url)).toBe(url)))
  })

  it("has the scheme http or https, in upper or lower case", () => {
    expect(accepts("HTTPS://receiver.example")).toBe(true)
    expect(accepts("hTTp://receiver.example")).toBe(true)
  })

  it("has no other scheme, no credentials, and at most `maxLength` characters", () => {
    const texts = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc
        .tuple(fc.constantFrom("http:", "https:", "ftp:", "//"), fc.string())
        .map((parts) => parts.join("//")),
      fc.webUrl({ validSchemes: ["http", "https", "ws", "file"] }),
    )
    fc.assert(
      fc.property(texts, (text) => {
        if (!accepts(text)) return
        const { password, protocol, username } = new URL(text)
        expect(["http:", "https:"]).toContain(protocol)
        expect(username + password).toBe("")
        expect(text.length).toBeLessThanOrEqual(maxWebhookUrlLength)
      }),
    )
  })

  it("may have `maxLength` characters", () => {
    expect(accepts(urlOf(maxWebhookUrlLength))).toBe(true)
  })

  it("is refused with a space, a control character or an invisible character", () => {
    const odd = fc.constantFrom(" ", "\t", "\n", "\0", "\u00a0", "\u200b", "\u2028", "\\", "\ud800")
    fc.assert(
      fc.property(webUrls, odd, fc.nat(), (url, character, at) => {
        const index = at % (url.length + 1)
        expect(accepts(url.slice(0, index) + character + url.slice(index))).toBe(false)
      }),
    )
  })

  it("is refused if it is not a string", () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        fc.pre(typeof input !== "string")
        expect(outcome(input)).toBe("url is required and must be a string")
      }),
    )
  })

  it("has a host that is permitted, in the spelling of URL.hostname", () => {
    fc.assert(
      fc.property(webUrls, fc.boolean(), (url, isPermitted) => {
        const asked: Array<string> = []
        const permitsHost = (host: string) => asked.push(host) > 0 && isPermitted
        expect(accepts(url, { permitsHost })).toBe(isPermitted)
        expect(asked).toEqual([new URL(url).hostname])
      }),
    )
  })

  it("has https if that is required", () => {
    fc.assert(
      fc.property(webUrls, (url) => {
        expect(accepts(url, { requireHttps: true })).toBe(url.startsWith("https:"))
      }),
    )
  })

  it("has https or an address if the transport sends no http to names", () => {
    const rules = { sendsHttpToNames: false }
    fc.assert(
      fc.property(fc.domain(), addresses, (name, address) => {
        expect(accepts(`https://${name}/`, rules)).toBe(true)
        expect(accepts(`http://${address}/`, rules)).toBe(true)
        expect(accepts(`http://${name}/`, rules)).toBe(false)
      }),
    )
  })
})

describe("the error", () => {
  const absolute = "url must be a valid absolute http or https URL"

  it.each([
    [undefined, "url is required and must be a string"],
    [urlOf(maxWebhookUrlLength + 1), `url must be at most ${maxWebhookUrlLength} characters`],
    ["", absolute],
    ["receiver.example", absolute],
    ["ftp://receiver.example/", absolute],
    ["https:receiver.example", absolute],
    ["https:///receiver.example", absolute],
    ["https://user@receiver.example/", "url must not contain credentials"],
    ["https://:pass@receiver.example/", "url must not contain credentials"],
  ])("for %j says what is wrong", (url, message) => {
    expect(outcome(url)).toBe(message)
  })

  it("is an InvalidWebhookUrl", () => {
    const decoded = decodeWebhookUrl("", lenient)
    expect(decoded).toMatchObject({ failure: { _tag: "InvalidWebhookUrl", message: absolute } })
  })

  it("for a scheme or a host says what is wrong", () => {
    const url = "http://receiver.example/"
    expect(outcome(url, { requireHttps: true })).toBe("url must use https")
    expect(outcome(url, { sendsHttpToNames: false })).toBe(
      "url must use https: this service sends http to IP addresses only",
    )
    expect(outcome(url, { permitsHost: () => false })).toBe(
      "url must not point to a private address, unless webhooks.allowedNetworks of the server includes it",
    )
  })
})
