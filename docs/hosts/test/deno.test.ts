import { adapterSuite } from "@tenure/testing/conformance"
import { inRuntime } from "./remote.ts"

adapterSuite("Deno", inRuntime("deno", ["run", "--allow-all"]))
