import { memory } from "@tenure/memory"
import { nodeTransport } from "@tenure/node-http"
import { deliverySuite } from "@tenure/testing"

deliverySuite("memory", { stores: () => memory(), transport: nodeTransport })
