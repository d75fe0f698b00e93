import { memory } from "@tenure/memory"
import { deliverySuite } from "@tenure/testing/conformance"
import { nodeTransport } from "../src/transport.ts"

deliverySuite("memory", { stores: () => memory(), transport: nodeTransport })
