/**
 * Loaded before a server: sets its clock off by the milliseconds in the file `CLOCK_FILE`, if there is one, and
 * reads it again ten times a second. In JavaScript, so that the server does not have to load what strips types.
 */

import { readFileSync } from "node:fs"

const file = process.env["CLOCK_FILE"]
const { now } = Date

const readOffset = () => (file === undefined ? 0 : Number(readFileSync(file, "utf8")))
let offset = readOffset()
setInterval(() => {
  offset = readOffset()
}, 100).unref()

Date.now = () => now() + offset
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
})
