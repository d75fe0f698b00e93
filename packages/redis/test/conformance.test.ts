/** The port on one server, with the clients of both libraries. */

import { certifyServer } from "./harness.ts"

certifyServer(5)
