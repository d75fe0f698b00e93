/** Both Express versions answer every operation for every role; the quick suite tests one adapter alone. */

import { adapterSuite } from "@tenure/testing/conformance"
import { hostOf, versions } from "./host.ts"

for (const [name, express] of versions) adapterSuite(name, hostOf(express))
