/** Authentication by an API key, in the terms of `HttpApi`. */

import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"

/** Authentication by an API key, sent as a bearer token. */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "@tenure/core/Api/Authorization",
  { requiredForClient: true, security: { bearer: HttpApiSecurity.bearer } },
) {
  /** Sends a token with every request of a client. */
  static readonly layerClient = (
    token: Redacted.Redacted,
  ): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
    HttpApiMiddleware.layerClient(this, ({ next, request }) =>
      next(HttpClientRequest.bearerToken(request, token)),
    )
}
