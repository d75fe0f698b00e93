import { describe, expect, it } from "vitest"
import { describeAttemptError } from "../../src/webhooks/verdict.ts"

const answered = (status: number) => ({ _tag: "Answered", status, body: "a secret" }) as const

describe("the error of an attempt", () => {
  it.each([200, 204, 299])("is missing for status %s", (status) => {
    expect(describeAttemptError(answered(status))).toBeUndefined()
  })

  it.each([
    [199, "Only 200 to 299"],
    [300, "Redirects are not followed"],
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
    ["NoAnswer", "closed the connection without an answer"],
    ["AddressNotAllowed", "may not reach"],
    ["SecretUnreadable", "Nothing was sent, because the secret"],
    ["Unreadable", "Nothing was sent, because the event"],
    ["Defect", "an internal error"],
    ["ECONNREFUSED", "refused the connection"],
    ["ECONNRESET", "The receiver closed the connection."],
    ["EPIPE", "The receiver closed the connection."],
    ["ETIMEDOUT", "cannot be reached"],
    ["EHOSTUNREACH", "cannot be reached"],
    ["ENETUNREACH", "cannot be reached"],
    ["ENOTFOUND", "does not exist"],
    ["EAI_AGAIN", "cannot be resolved at the moment"],
    ["CERT_HAS_EXPIRED", "has expired"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "for another host name"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "is not trusted"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "is not trusted"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "is not trusted"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "is not trusted"],
    ["Proxy:407", "requires other credentials"],
    ["Proxy:ECONNRESET", "The proxy for webhooks closed the connection"],
    ["Proxy:ETIMEDOUT", "The proxy for webhooks did not connect to the receiver in time."],
    ["Proxy:403", "did not connect to the receiver: it answered 403."],
    ["Proxy:ECONNREFUSED", "The proxy for webhooks cannot be used: ECONNREFUSED."],
    ["Proxy:E403", "The proxy for webhooks cannot be used: E403."],
    ["Proxy:403E", "The proxy for webhooks cannot be used: 403E."],
    ["Proxy", "could not be sent: Proxy."],
    ["Other:407", "could not be sent: Other:407."],
    ["HPE_INVALID_CONSTANT", "could not be sent: HPE_INVALID_CONSTANT."],
    ["constructor", "could not be sent: constructor."],
  ])("says what the code %s means", (reason, text) => {
    expect(describeAttemptError({ _tag: "Failed", reason })).toContain(text)
  })
})
