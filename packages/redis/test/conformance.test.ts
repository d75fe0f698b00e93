/** The port on one server, with the clients of both libraries. */

import { certifyServer } from "./certifying.ts"

certifyServer(5)
