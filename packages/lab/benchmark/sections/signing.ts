/** Signing an event of one kilobyte, beside node:crypto alone and the libraries of the standard. */

import { createHmac } from "node:crypto"
import { WebhookSecret, signMessage } from "@tenure/core/signature"
import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { type Section, rowsOf } from "../measurement.ts"
import { brief, compare, repeat } from "../rounds.ts"
import type { Target } from "../target.ts"

const secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
const id = "b9019cc1-e966-4695-ad2c-6caf64a8431f"
const timestamp = 1_790_000_000
const date = new Date(timestamp * 1000)
const body = "x".repeat(1024)

const standard = new StandardWebhook(secret)
const svix = new SvixWebhook(secret)

// The same as Tenure, which is given the secret as text each time and keeps no key.
const signBare = (): string => {
  const key = Buffer.from(secret.slice("whsec_".length), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`
}

const signers = {
  tenure: { name: "Tenure", sign: () => signMessage({ id, timestamp, body }, secret) },
  peers: [
    { name: "node:crypto alone", sign: signBare },
    { name: "standardwebhooks", sign: () => standard.sign(id, date, body) },
    { name: "svix", sign: () => svix.sign(id, date, body) },
  ],
}

const targets: Record<string, Target> = {
  "node:crypto alone": { of: "ratio", atMost: 1.3 },
}

const contestant = ({ name, sign }: typeof signers.tenure) => repeat(name, sign)

/** The time of one signature. */
export const signing: Section = {
  name: "signing",
  measure: async (settings) => {
    for (const { name, sign } of signers.peers) {
      if (sign() !== signers.tenure.sign()) throw new Error(`${name} signs otherwise`)
    }
    const field = {
      tenure: contestant(signers.tenure),
      peers: signers.peers.map(contestant),
    }
    const scores = await compare(field, brief(settings))
    return { rows: rowsOf("signature of 1 KiB", "time", scores, targets) }
  },
}
