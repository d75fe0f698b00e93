/** Deliveries by the transport, from stores in memory. */

import { memory } from "@tenure/memory"
import { deliverySuite } from "@tenure/testing/conformance"
import { nodeTransport } from "../src/transport.ts"

deliverySuite("memory", { stores: () => memory(), transport: nodeTransport })
