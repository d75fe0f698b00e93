/**
 * Loaded before a server: sets its clock off by the milliseconds in `CLOCK_OFFSET`. In JavaScript, so
 * that the server does not have to load what strips types.
 */

const offset = Number(process.env["CLOCK_OFFSET"] ?? 0)
const { now } = Date

Date.now = () => now() + offset
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
})
