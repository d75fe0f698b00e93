/** All ports in a folder. The quick suite runs a sample. */

import { certifyEmbedded } from "./certifying.ts"

certifyEmbedded({ runs: 20, withOutbox: true })
