/** Certificates for tests, signed by an authority of their own. */

import { type KeyObject, generateKeyPairSync, randomBytes, sign } from "node:crypto"

const tags = { integer: 2, bits: 3, octets: 4, name: 12, time: 24, sequence: 48, set: 49 } as const

/** Encodes an ASN.1 value by DER. */
const der = (tag: number, ...content: ReadonlyArray<Uint8Array>): Buffer => {
  const body = Buffer.concat(content)
  const length =
    body.length < 128 ? [body.length] : [0x82, Math.floor(body.length / 256), body.length % 256]
  return Buffer.concat([Uint8Array.of(tag, ...length), body])
}

const sequence = (...content: ReadonlyArray<Uint8Array>) => der(tags.sequence, ...content)
const hex = (text: string) => Buffer.from(text, "hex")

const identifiers = {
  commonName: hex("0603550403"),
  basicConstraints: hex("0603551d13"),
  subjectAltName: hex("0603551d11"),
  ecdsaWithSha256: hex("06082a8648ce3d040302"),
}

const nameOf = (name: string) =>
  sequence(der(tags.set, sequence(identifiers.commonName, der(tags.name, Buffer.from(name)))))

const time = (date: Date) =>
  der(tags.time, Buffer.from(`${date.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14)}Z`))

const isAddress = (name: string): boolean => /^[\d.]+$/.test(name)

const altName = (name: string) =>
  isAddress(name)
    ? der(0x87, Buffer.from(name.split(".").map(Number)))
    : der(0x82, Buffer.from(name))

const authorityExtension = sequence(
  identifiers.basicConstraints,
  der(tags.octets, sequence(hex("0101ff"))),
)

const serverExtension = (names: ReadonlyArray<string>) =>
  sequence(identifiers.subjectAltName, der(tags.octets, sequence(...names.map(altName))))

const pem = (content: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${content.toString("base64")}\n-----END CERTIFICATE-----\n`

const makeKeys = () => generateKeyPairSync("ec", { namedCurve: "P-256" })

/** Makes an authority, with its certificate as PEM. */
export const makeAuthority = () => {
  const issuer = `authority ${randomBytes(4).toString("hex")}`
  const { privateKey, publicKey } = makeKeys()

  const certify = (subject: string, key: KeyObject, extension: Buffer): string => {
    const algorithm = sequence(identifiers.ecdsaWithSha256)
    const signed = sequence(
      der(0xa0, der(tags.integer, Uint8Array.of(2))),
      der(tags.integer, Uint8Array.of(1), randomBytes(8)),
      algorithm,
      nameOf(issuer),
      sequence(time(new Date(0)), time(new Date("2049-01-01T00:00:00.000Z"))),
      nameOf(subject),
      key.export({ type: "spki", format: "der" }),
      der(0xa3, sequence(extension)),
    )
    const signature = sign("sha256", signed, privateKey)
    return pem(sequence(signed, algorithm, der(tags.bits, Uint8Array.of(0), signature)))
  }

  return {
    certificate: certify(issuer, publicKey, authorityExtension),
    /** Issues a certificate and key for a server with these names: IPv4 addresses or host names. */
    issue: (names: ReadonlyArray<string>) => {
      const keys = makeKeys()
      return {
        certificate: certify("server", keys.publicKey, serverExtension(names)),
        key: keys.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      }
    },
  }
}
