/** Why a membership was changed, in the words of whoever asked for it. */

import type { Branded } from "effect/Brand"
import { refined } from "../base/Refined.ts"

/** The reason for a change: 1 to 500 characters. */
export type Reason = Branded<string, "@tenure/core/Reason">

/** What a reason looks like. PostgreSQL cannot store NUL, and a lone surrogate has no UTF-8 encoding. */
export const reasonPattern = /^[^\0\p{Cs}]{1,500}$/u

/** Brands text as a reason. Throws a `TypeError` if it is invalid. */
export const Reason = refined<string, Reason>("reason", "1 to 500 characters", (text) =>
  reasonPattern.test(text),
)
