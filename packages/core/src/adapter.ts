/** A host's HTTP side: requests, responses, and other mountable handlers. */

export {
  headerValues,
  keepRepeatedHeaders,
  singleHeader,
  type HeaderFields,
} from "./base/headers.ts"
export {
  checkMountable,
  isConnectable,
  type Connectable,
  type Mountable,
} from "./http/mountable.ts"
export type { RealtimeSession } from "./http/realtime.ts"
export {
  abortedBody,
  consumedBody,
  emptyBody,
  hasUnknownCoding,
  pathOf,
  queryOf,
  tooLargeBody,
  unknownCodingBody,
  type ApiRequest,
  type ArrivedBody,
  type Body,
} from "./http/request.ts"
export type { ApiResponse, ResponseBody, TextStream } from "./http/response.ts"
export type { Authenticate } from "./keys/identity.ts"
