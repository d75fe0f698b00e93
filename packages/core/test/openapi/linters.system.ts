/** The document has no errors and no warnings in popular linters. */

import { createConfig, lintFromString } from "@redocly/openapi-core"
import { validate } from "@scalar/openapi-parser"
import spectral from "@stoplight/spectral-core"
import rulesets from "@stoplight/spectral-rulesets"
import { openApi } from "@tenure/core/openapi"
import { expect, it } from "vitest"

const document = openApi()
const source = JSON.stringify(document)

it("of Redocly, by its recommended rules", async () => {
  const config = await createConfig({ extends: ["recommended"] })
  const problems = await lintFromString({ source, absoluteRef: "/openapi.json", config })
  expect(problems.map(({ location, message }) => [message, location[0]?.pointer])).toEqual([])
})

it("of Spectral, by its rules for OpenAPI", async () => {
  const linter = new spectral.Spectral()
  linter.setRuleset({ extends: [[{ ...rulesets.oas, extends: [] }, "recommended"]] })
  expect(await linter.run(JSON.parse(source))).toEqual([])
})

it("of Scalar's parser", async () => {
  expect(await validate(source)).toMatchObject({ valid: true, errors: [] })
})
