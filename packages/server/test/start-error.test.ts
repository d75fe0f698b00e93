/** A server that cannot listen says which variable to change. */

import { describe, expect, it } from "vitest"
import { variables } from "../src/settings.ts"
import { startErrorFromListening } from "../src/start-error.ts"

const { host, port } = variables

const messageOf = (fault: unknown): string =>
  startErrorFromListening(port, 80, host, "a.example")(fault).message

const faultOf = (code: string): Error =>
  Object.assign(new Error(`listen ${code}: what the system says`), { code })

describe("a server that cannot listen", () => {
  it.each([
    ["EACCES", /^PORT: .*not permitted to listen on port 80\. Set PORT to .* \(EACCES\)\.$/],
    ["EADDRINUSE", /^PORT: another program listens on port 80 of a\.example\. .*set PORT/],
    ["EADDRNOTAVAIL", /^HOST: a\.example is not an address of this machine\. Set HOST/],
    ["EAFNOSUPPORT", /^HOST: this machine has no addresses such as a\.example\. Set HOST/],
    ["ENOTFOUND", /^HOST: the name a\.example cannot be resolved\. Set HOST/],
    ["EAI_AGAIN", /^HOST: the name a\.example cannot be resolved\. Set HOST/],
    ["EINVAL", /^HOST or PORT: Error: listen EINVAL: what the system says$/],
  ])("says which variable is to be changed, and how: %s", (code, message) => {
    expect(messageOf(faultOf(code))).toMatch(message)
  })
})
