/** The bundled server, as `npm start` runs it. */

import { runServer } from "@tenure/server"

await runServer()
