/** Manifests of Kubernetes, checked against the schemas that its API publishes. */

import { PodMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { Service } from "kubernetes-models/v1/Service"
import { parseAllDocuments } from "yaml"

const kinds = { Deployment, NetworkPolicy, PodDisruptionBudget, PodMonitor, Service }

const isKind = (kind: string): kind is keyof typeof kinds => Object.hasOwn(kinds, kind)

/** Returns the objects of a file with several, by kind, or throws what the schema of one does not allow. */
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
