/** Every operation on Effect's router; the quick suite tests them on the same handler only. */

import { adapterSuite } from "@tenure/testing/conformance"
import { routerHarness } from "../support/router.ts"

adapterSuite("Effect's NodeHttpServer, with every operation", routerHarness)
