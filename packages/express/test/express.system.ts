/** Both versions of Express answer every operation, for every role, of which the quick suite tests one adapter alone. */

import { adapterSuite } from "@tenure/testing/conformance"
import { hostOf, versions } from "./host.ts"

for (const [name, express] of versions) adapterSuite(name, hostOf(express))
