/** Identifiers of API keys. They belong to `base` because limits and audit rows name keys too. */

import type { Branded } from "effect/Brand"
import { expected, isIdentifier } from "./Identifier.ts"
import { refined } from "./Refined.ts"

/**
 * Identifier of an API key: 1 to 255 characters, none of them a control character. Keys that Tenure
 * issues have a UUID. Unlike the token, the id is not secret.
 */
export type ApiKeyId = Branded<string, "@tenure/core/ApiKeyId">

/** Brands the id of an API key. Throws a `TypeError` if it is invalid. */
export const ApiKeyId = refined<string, ApiKeyId>("API key id", expected, isIdentifier)
