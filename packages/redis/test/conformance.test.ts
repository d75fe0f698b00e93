/** The port on one server. */

import { certifyServer } from "./harness.ts"

certifyServer(5)
