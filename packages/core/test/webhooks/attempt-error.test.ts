import { describe, expect, it } from "vitest"
import { describeAttemptError } from "../../src/webhooks/verdict.ts"

const answered = (status: number) => ({ _tag: "Answered", status, body: "a secret" }) as const

describe("the error of an attempt", () => {
  it.each([200, 204, 299])("is missing for status %s", (status) => {
    expect(describeAttemptError(answered(status))).toBeUndefined()
  })

  it.each([
    [199, "Only 200 to 299"],
    [301, "Redirects are not followed"],
    [399, "Redirects are not followed"],
    [400, "Only 200 to 299"],
    [410, "no more notifications"],
    [500, "Only 200 to 299"],
  ])("says what status %s means, and nothing of the response", (status, text) => {
    const error = describeAttemptError(answered(status))
    expect(error).toContain(String(status))
    expect(error).toContain(text)
    expect(error).not.toContain("secret")
  })

  it.each([
    ["Timeout", "did not answer in time"],
    ["AddressNotAllowed", "may not reach"],
    ["SecretUnreadable", "Nothing was sent"],
    ["ECONNREFUSED", "refused the connection"],
    ["CERT_HAS_EXPIRED", "has expired"],
    ["Proxy:407", "requires other credentials"],
    ["Proxy:ECONNRESET", "The proxy for webhooks closed the connection"],
    ["Proxy:ETIMEDOUT", "The proxy for webhooks did not connect to the receiver in time."],
    ["Proxy:403", "did not connect to the receiver: it answered 403."],
    ["Proxy:ECONNREFUSED", "The proxy for webhooks cannot be used: ECONNREFUSED."],
    ["HPE_INVALID_CONSTANT", "could not be sent: HPE_INVALID_CONSTANT."],
    ["constructor", "could not be sent: constructor."],
  ])("says what the code %s means", (reason, text) => {
    expect(describeAttemptError({ _tag: "Failed", reason })).toContain(text)
  })
})
