/** A curl command for each endpoint, ready to paste. */

import type { Demo } from "./demo.ts"

const day = 86_400_000

const json = (body: object): string =>
  `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`

/** Returns the commands that try every endpoint with the demo project. */
export const curls = (
  url: string,
  { adminToken, projectId, token, userId }: Demo,
  now: number,
): string => {
  const project = `${url}/v2/projects/${projectId}`
  const webhooks = `${project}/integrations/webhooks`
  const authorization = `-H 'Authorization: Bearer ${token}'`
  // The same text for a day, however often the server starts.
  const today = now - (now % day)
  const extend = { extend: new Date(today + 30 * day).toISOString() }
  const firstWebhook = `$(curl -s ${authorization} '${webhooks}' | grep -o '"id":"[^"]*"' | head -n 1 | cut -d '"' -f 4)`
  return `
# Extend one membership
curl -X PATCH '${project}/memberships/${userId}/extend' ${authorization} ${json(extend)}

# Extend all memberships of the project
curl -X PATCH '${project}/memberships/extend' ${authorization} ${json({ extend: today + 60 * day })}

# Create a webhook
curl -X POST '${webhooks}' ${authorization} ${json({ url: "https://receiver.example/webhooks" })}

# List the webhooks
curl '${webhooks}' ${authorization}

# Delete the first of them
curl -X DELETE "${webhooks}/${firstWebhook}" ${authorization}

# List the API keys, with that of an admin
curl '${url}/v2/api-keys' -H 'Authorization: Bearer ${adminToken}'

# Open the console in a browser, and sign in with the token of the admin: ${adminToken}
${url}/console/
`
}

/** Returns how to get an API key for data without the demo. */
export const anotherKey = (url: string, folder: string): string => {
  const ofAdmin = `-H 'Authorization: Bearer TOKEN'`
  const seed = { projects: [], api_keys: [{ token: "TOKEN", role: "admin" }] }
  return `
# Everything is in the folder ${folder}. A token is shown once, when its API key is issued.

# Create another one, with the token of the admin
curl -X POST '${url}/v2/api-keys' ${ofAdmin} ${json({ role: "client", projects: ["demo"] })}

# Give an admin a token that you choose, if you have none
echo '${JSON.stringify(seed)}' > seed.json && SEED_FILE=seed.json npm start
`
}
