import { type StoreHarness, storeSuite } from "@tenure/testing/conformance"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { memory } from "../src/index.ts"

const harness: StoreHarness = {
  layer: Layer.merge(memory(), TestClock.layer()),
  advance: (millis) => TestClock.adjust(millis),
}

storeSuite("memory", harness)
