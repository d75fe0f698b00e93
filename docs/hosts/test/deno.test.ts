import { adapterSuite } from "@tenure/testing"
import { inRuntime } from "./remote.ts"

adapterSuite("Deno", inRuntime("deno", ["run", "--allow-all", "--conditions=@tenure/source"]))
