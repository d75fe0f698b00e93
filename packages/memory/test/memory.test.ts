import { memory } from "@tenure/memory"
import { storeSuite } from "@tenure/testing"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"

storeSuite("memory", {
  layer: Layer.merge(memory(), TestClock.layer()),
  advance: (millis) => TestClock.adjust(millis),
})
