import * as OpenApi from "effect/http-api/OpenApi"
import { expect, it } from "vitest"
import { Api, complete } from "../../../src/openapi/document.ts"

const withSchema = (name: string, schema: OpenApi.OpenAPIComponents["schemas"][string]) => {
  const spec = OpenApi.fromApi(Api)
  const schemas = { ...spec.components.schemas, [name]: schema }
  return complete({ ...spec, components: { ...spec.components, schemas } })
}

it("leaves out copies of a schema, which are equal to it", () => {
  const { Role } = OpenApi.fromApi(Api).components.schemas
  expect(withSchema("Role_9", { ...Role })).toEqual(complete(OpenApi.fromApi(Api)))
})

it("refuses a schema that has the name of another one", () => {
  expect(() => withSchema("Role_9", { type: "string" })).toThrow("Role")
})
