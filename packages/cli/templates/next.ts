import { createTenure } from "tenure"
import { fetchHandler } from "tenure/fetch"
import { memory } from "tenure/memory"
import { nodeTransport } from "tenure/node"

const start = async () => {
  const tenure = await createTenure({ stores: memory(), transport: nodeTransport })
  await tenure.memberships.createProject("p1")
  await tenure.memberships.grant({ projectId: "p1", userId: "1001", endDate: 1_800_000_000_000 })
  const { token } = await tenure.apiKeys.issue({ projects: ["p1"] })
  console.log(`Authorization: Bearer ${token}`)
  return fetchHandler(tenure)
}

declare global {
  var membershipApi: ReturnType<typeof start> | undefined
}

const answer = async (request: Request) => {
  const api = await (globalThis.membershipApi ??= start())
  return (await api(request)) ?? new Response(null, { status: 404 })
}

export { answer as DELETE, answer as GET, answer as PATCH, answer as POST, answer as PUT }
