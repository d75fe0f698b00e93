import { adapterSuite } from "@tenure/testing"
import { inRuntime } from "./remote.ts"

adapterSuite("Bun", inRuntime("bun", ["--conditions=@tenure/source"]))
