/** The user whom an event is about. */

/** The length `userOf` reads from a body: membership events name their user at its beginning. */
export const userPrefixLength = 1000

const firstUser = /"user_id":("(?:[^"\\]|\\.)*"|[0-9]+)/

/** Returns the first user id in an event's body, within its first 1,000 characters, if there is one. */
export const userOf = (body: string): string | undefined => {
  const [, json] = firstUser.exec(body.slice(0, userPrefixLength)) ?? []
  return json?.startsWith('"') === true ? String(JSON.parse(json)) : json
}
