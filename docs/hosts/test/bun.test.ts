import { adapterSuite } from "@tenure/testing/conformance"
import { inRuntime } from "./remote.ts"

adapterSuite("Bun", inRuntime("bun"))
