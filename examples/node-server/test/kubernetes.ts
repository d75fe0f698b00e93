/** Kubernetes manifests, checked against the schemas of its API. */

import { PodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor"
import { readSettings, variables } from "@tenure/server/settings"
import * as Result from "effect/Result"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { Service } from "kubernetes-models/v1/Service"
import { parseAllDocuments } from "yaml"

const kinds = { Deployment, NetworkPolicy, PodDisruptionBudget, PodMonitor, Service }

const isKind = (kind: string): kind is keyof typeof kinds => Object.hasOwn(kinds, kind)

/** Returns the objects in a file, by kind. Throws if one does not match its schema. */
export const objectsOf = (text: string): Map<string, ReturnType<JSON["parse"]>> => {
  const objects = new Map<string, ReturnType<JSON["parse"]>>()
  for (const document of parseAllDocuments(text)) {
    for (const problem of [...document.errors, ...document.warnings]) throw problem
    const object = document.toJS()
    const kind: string = object.kind
    if (!isKind(kind)) throw new Error(`the kind ${kind} is not known here`)
    new kinds[kind](object).validate()
    objects.set(kind, object)
  }
  return objects
}

type Environment = Readonly<Record<string, string>>

/** Returns the variables of a container. */
export const environmentOf = ({ env }: { readonly env: ReadonlyArray<Environment> }): Environment =>
  Object.fromEntries(env.map(({ name, value }) => [name, value]))

/** Returns the names of variables that the server does not have. */
export const unknownIn = (environment: Environment): ReadonlyArray<string> => {
  const names = new Set<string>(Object.values(variables).map(({ name }) => name))
  return Object.keys(environment).filter((name) => !names.has(name))
}

/** Returns how many seconds a server with these variables may take to stop. */
export const stopSeconds = ({ DATABASE_MIGRATE: _, ...times }: Environment): number => {
  const { drainDelay, shutdownTimeout } = Result.getOrThrow(readSettings(times))
  return (drainDelay + shutdownTimeout) / 1000
}
