/** Prints Effect schemas for TypeScript types and JSON Schemas. */

import type { TSSignature, TSType, TSTypeName } from "oxc-parser"
import { type Doc, type Found, type Source, docAt, findType, findValue, noDoc } from "./source.ts"

/** Named schemas, in declaration order. */
export type NamedSchemas = Map<string, string>

/** Schemas for types declared by other modules. */
const declaredElsewhere: Readonly<Record<string, string>> = { Uuid: "uuid", Instant: "instant" }

const list = (items: ReadonlyArray<string>): string => `[${items.join(", ")}]`

const quoted = (value: unknown): string => JSON.stringify(value)

const nameOf = (name: TSTypeName): string => {
  if (name.type !== "Identifier") throw new Error("A type has a qualified name.")
  return name.name
}

/** Adds a doc comment's description and examples. */
export const annotated = (schema: string, { paragraphs, tags }: Doc, isNamed: boolean): string => {
  const example = tags.get("example")
  const annotations = [
    ...(paragraphs.length === 0 ? [] : [`description: ${quoted(paragraphs.join(" "))}`]),
    ...(example === undefined ? [] : [`examples: [${example}]`]),
  ]
  if (annotations.length === 0) return schema
  // `annotate` would lose the schema's name.
  return `${schema}.${isNamed ? "annotateKey" : "annotate"}({ ${annotations.join(", ")} })`
}

const between = (least: unknown, most: unknown): string =>
  most === undefined
    ? `Schema.isGreaterThanOrEqualTo(${String(least)})`
    : `Schema.isBetween({ minimum: ${String(least)}, maximum: ${String(most)} })`

const checked = (schema: string, checks: ReadonlyArray<string>): string =>
  checks.length === 0 ? schema : `${schema}.check(${checks.join(", ")})`

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const limits = {
  minLength: "isMinLength",
  maxLength: "isMaxLength",
  minItems: "isMinLength",
  maxItems: "isMaxLength",
  minProperties: "isMinProperties",
  maxProperties: "isMaxProperties",
}

/** Returns the checks for JSON Schema keywords. */
const checksOf = (json: Readonly<Record<string, unknown>>): ReadonlyArray<string> => [
  ...Object.entries(limits).flatMap(([keyword, check]) =>
    json[keyword] === undefined ? [] : [`Schema.${check}(${String(json[keyword])})`],
  ),
  ...(json["pattern"] === undefined
    ? []
    : [`Schema.isPattern(new RegExp(${quoted(json["pattern"])}, "u"))`]),
  ...(json["minimum"] === undefined ? [] : [between(json["minimum"], json["maximum"])]),
]

const isNull = (json: unknown): boolean => isObject(json) && json["const"] === null

/** Prints a JSON Schema as an Effect schema. */
export const ofJson = (json: unknown): string => {
  if (!isObject(json)) throw new Error("A field of a request has no JSON Schema.")
  if (typeof json["$ref"] === "string") return declaredElsewhere[json["$ref"]] ?? json["$ref"]
  if (Array.isArray(json["anyOf"])) {
    const others = json["anyOf"].filter((one) => !isNull(one)).map(ofJson)
    const all = others.length === 1 ? others.join("") : `Schema.Union(${list(others)})`
    return others.length === json["anyOf"].length ? all : `Schema.NullOr(${all})`
  }
  if (Array.isArray(json["enum"])) return `Schema.Literals(${quoted(json["enum"])})`
  const checks = checksOf(json)
  switch (json["type"]) {
    case "null":
      return "Schema.Null"
    case "string":
      return checked("Schema.String", checks)
    case "integer":
      return checked("Schema.Int", checks)
    case "boolean":
      return "Schema.Boolean"
    case "array":
      return checked(`Schema.Array(${ofJson(json["items"])})`, checks)
    case "object":
      if (isObject(json["properties"])) {
        const fields = Object.entries(json["properties"]).map(
          ([name, one]) => `${name}: Schema.optionalKey(${ofJson(one)})`,
        )
        return checked(`Schema.Struct({ ${fields.join(", ")} })`, checks)
      }
      return checked(
        `Schema.Record(Schema.String, ${ofJson(json["additionalProperties"])})`,
        checks,
      )
    default:
      return "Schema.Unknown"
  }
}

/** Prints a query parameter's schema. Query values are strings. */
export const ofQuery = (json: unknown): string => {
  if (!isObject(json)) throw new Error("A parameter has no JSON Schema.")
  if (json["type"] === "boolean") return 'Schema.Literals(["true", "false"])'
  return json["type"] === "integer"
    ? checked("Schema.FiniteFromString", ["Schema.isInt()", ...checksOf(json)])
    : ofJson(json)
}

/** Returns the JSON Schema keywords in a doc comment's tags. */
const keywordsIn = ({ tags }: Doc): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    [...tags].flatMap(([name, value]) =>
      name in limits || name === "minimum" || name === "maximum"
        ? [[name, Number(value)]]
        : name === "pattern"
          ? [[name, value]]
          : [],
    ),
  )

/** Tells whether TypeScript itself provides a type. */
const isUtility = (name: string): boolean =>
  ["Omit", "Pick", "Readonly", "ReadonlyArray", "Record"].includes(name)

interface Member {
  readonly name: string
  readonly isOptional: boolean
  readonly doc: Doc
  readonly source: Source
  readonly type: TSType
}

const memberOf = (source: Source, signature: TSSignature): Member => {
  if (
    signature.type !== "TSPropertySignature" ||
    signature.key.type !== "Identifier" ||
    !signature.typeAnnotation
  ) {
    throw new Error(`${source.path} has a member that is no property.`)
  }
  return {
    name: signature.key.name,
    isOptional: signature.optional,
    doc: docAt(source, signature.start),
    source,
    type: signature.typeAnnotation.typeAnnotation,
  }
}

/** Returns the strings in a literal union, for example the second argument to `Pick`. */
const literalsIn = (type: TSType | undefined): ReadonlyArray<string> => {
  if (type?.type === "TSUnionType") return type.types.flatMap(literalsIn)
  return type?.type === "TSLiteralType" && type.literal.type === "Literal"
    ? [String(type.literal.value)]
    : []
}

/** Returns an object type's properties. A later declaration replaces an earlier one. */
const membersOf = (source: Source, type: TSType): ReadonlyArray<Member> => {
  if (type.type === "TSTypeLiteral") return type.members.map((one) => memberOf(source, one))
  if (type.type === "TSIntersectionType") return type.types.flatMap((one) => membersOf(source, one))
  if (type.type !== "TSTypeReference") throw new Error(`${source.path}: ${type.type} is no object`)
  return membersOfName(source, nameOf(type.typeName), type.typeArguments?.params ?? [])
}

const membersOfName = (
  source: Source,
  name: string,
  [first, second]: ReadonlyArray<TSType>,
): ReadonlyArray<Member> => {
  if ((name === "Pick" || name === "Omit") && first !== undefined) {
    const names = literalsIn(second)
    return membersOf(source, first).filter((one) => names.includes(one.name) === (name === "Pick"))
  }
  const { node, source: own } = findType(source, name)
  if (node.type === "TSTypeAliasDeclaration") return membersOf(own, node.typeAnnotation)
  const inherited = node.extends.flatMap(({ expression, typeArguments }) => {
    if (expression.type !== "Identifier") throw new Error(`${own.path}: ${name} extends a value`)
    return membersOfName(own, expression.name, typeArguments?.params ?? [])
  })
  return [...inherited, ...node.body.body.map((one) => memberOf(own, one))]
}

/** Returns an array's words in a module, for a type such as `(typeof words)[number]`. */
const wordsOf = (source: Source, name: string): ReadonlyArray<unknown> => {
  const found = findValue(source, name)
  const array = found.node.type === "TSAsExpression" ? found.node.expression : found.node
  if (array.type !== "ArrayExpression") throw new Error(`${source.path}: ${name} is no array`)
  return array.elements.flatMap((element) => {
    if (element?.type === "Literal") return [element.value]
    if (element?.type === "SpreadElement" && element.argument.type === "Identifier") {
      return wordsOf(found.source, element.argument.name)
    }
    throw new Error(`${source.path}: ${name} has an element that is no word`)
  })
}

/** Returns the words in a literal or union type, or `undefined` for any other type. */
const wordsIn = (source: Source, type: TSType): ReadonlyArray<unknown> | undefined => {
  switch (type.type) {
    case "TSLiteralType":
      return literalsIn(type)
    case "TSParenthesizedType":
      return wordsIn(source, type.typeAnnotation)
    case "TSUnionType": {
      const all = type.types.map((one) => wordsIn(source, one))
      return all.includes(undefined) ? undefined : all.flatMap((words) => words ?? [])
    }
    case "TSTypeQuery":
      return type.exprName.type === "Identifier" ? wordsOf(source, type.exprName.name) : undefined
    case "TSIndexedAccessType":
      return type.indexType.type === "TSNumberKeyword"
        ? wordsIn(source, type.objectType)
        : undefined
    case "TSTypeReference": {
      const name = nameOf(type.typeName)
      if (isUtility(name)) return undefined
      const found = findType(source, name)
      return found.node.type === "TSTypeAliasDeclaration"
        ? wordsIn(found.source, found.node.typeAnnotation)
        : undefined
    }
    default:
      return undefined
  }
}

/** Returns the doc comment above the property in an indexed access type such as `Membership["user_id"]`. */
const docOfType = (source: Source, type: TSType): Doc => {
  if (type.type !== "TSIndexedAccessType") return noDoc
  const [name] = literalsIn(type.indexType)
  const members = name === undefined ? [] : membersOf(source, type.objectType)
  return members.find((one) => one.name === name)?.doc ?? noDoc
}

const isNullType = ({ type }: TSType): boolean => type === "TSNullKeyword"

/** Makes functions that print types as schemas and collect named ones. */
export const makePrinter = (named: NamedSchemas) => {
  const structOf = (source: Source, type: TSType): string =>
    `Schema.Struct({ ${membersOf(source, type).map(propertyOf).join(", ")} })`

  const propertyOf = ({ doc: own, isOptional, name, source, type }: Member): string => {
    const doc = own === noDoc ? docOfType(source, type) : own
    const schema = ofType(source, type, doc)
    const isReference = /^[A-Za-z]\w*$/.test(schema)
    const whole = annotated(schema, doc, isReference)
    return `${name}: ${isOptional ? `Schema.optionalKey(${whole})` : whole}`
  }

  const ofName = (source: Source, name: string, parameters: ReadonlyArray<TSType>, doc: Doc) => {
    const [first] = parameters
    const [, second] = parameters
    if (name === "Readonly" && first !== undefined) return ofType(source, first, doc)
    if (name === "ReadonlyArray" && first !== undefined) {
      return checked(`Schema.Array(${ofType(source, first)})`, checksOf(keywordsIn(doc)))
    }
    if (name === "Record" && second !== undefined) {
      return `Schema.Record(Schema.String, ${ofType(source, second)})`
    }
    if (name === "Pick" || name === "Omit") {
      return `Schema.Struct({ ${membersOfName(source, name, parameters).map(propertyOf).join(", ")} })`
    }
    const elsewhere = declaredElsewhere[name]
    if (elsewhere !== undefined) return elsewhere
    const found = findType(source, name)
    const own = docAt(found.source, found.start)
    if (own.tags.has("integer")) {
      return checked("Schema.Int", checksOf({ ...keywordsIn(own), ...keywordsIn(doc) }))
    }
    const isAlias = found.node.type === "TSTypeAliasDeclaration"
    const isNamed =
      found.source.path.includes("/src/api/") && !(isAlias && own.paragraphs.length === 0)
    return isNamed
      ? ofNamed(name, found, own)
      : found.node.type === "TSTypeAliasDeclaration"
        ? ofType(found.source, found.node.typeAnnotation, doc)
        : structOf(source, {
            type: "TSTypeLiteral",
            members: found.node.body.body,
            start: 0,
            end: 0,
          })
  }

  /** Declares the schema for an API type, once. */
  const ofNamed = (
    name: string,
    { node, source }: Found<ReturnType<typeof findType>["node"]>,
    doc: Doc,
  ) => {
    if (!named.has(name)) {
      const struct =
        node.type === "TSTypeAliasDeclaration"
          ? ofType(source, node.typeAnnotation, doc)
          : `Schema.Struct({ ${membersOfName(source, name, []).map(propertyOf).join(", ")} })`
      const isAlias = node.type === "TSTypeAliasDeclaration"
      const whole = isAlias ? annotated(struct, doc, false) : struct
      named.set(name, `${whole}.annotate({ identifier: ${quoted(name)} })`)
    }
    return name
  }

  const ofUnion = (source: Source, types: ReadonlyArray<TSType>, doc: Doc): string => {
    const others = types.filter((type) => !isNullType(type))
    const words = others.flatMap((type) => wordsIn(source, type) ?? [undefined])
    const schemas =
      !words.includes(undefined) && words.length > 1
        ? [`Schema.Literals(${quoted(words)})`]
        : others.map((type) => ofType(source, type, doc))
    const all = schemas.length === 1 ? schemas.join("") : `Schema.Union(${list(schemas)})`
    return others.length === types.length ? all : `Schema.NullOr(${all})`
  }

  const ofIndexed = (source: Source, object: TSType, index: TSType): string => {
    const words = index.type === "TSNumberKeyword" ? wordsIn(source, object) : undefined
    if (words !== undefined) return `Schema.Literals(${quoted(words)})`
    const [name] = literalsIn(index)
    const member = membersOf(source, object).find((one) => one.name === name)
    if (member === undefined) throw new Error(`${source.path} has no property ${name}`)
    return ofType(member.source, member.type, member.doc)
  }

  /** Prints a type's schema. Its doc comment may limit it. */
  const ofType = (source: Source, type: TSType, doc: Doc = noDoc): string => {
    switch (type.type) {
      case "TSStringKeyword":
        return checked("Schema.String", checksOf(keywordsIn(doc)))
      case "TSNumberKeyword":
        return "Schema.Number"
      case "TSBooleanKeyword":
        return "Schema.Boolean"
      case "TSNullKeyword":
        return "Schema.Null"
      case "TSUnknownKeyword":
        return "Schema.Unknown"
      case "TSLiteralType":
        return `Schema.Literal(${quoted(type.literal.type === "Literal" ? type.literal.value : null)})`
      case "TSParenthesizedType":
        return ofType(source, type.typeAnnotation, doc)
      case "TSUnionType":
        return ofUnion(source, type.types, doc)
      case "TSTypeLiteral":
      case "TSIntersectionType":
        return structOf(source, type)
      case "TSIndexedAccessType":
        return ofIndexed(source, type.objectType, type.indexType)
      case "TSTypeReference":
        return ofName(source, nameOf(type.typeName), type.typeArguments?.params ?? [], doc)
      default:
        throw new Error(`${source.path}: no schema for ${type.type}`)
    }
  }
  return ofType
}
