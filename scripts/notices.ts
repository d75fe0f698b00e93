/** The licences of other packages whose code is in a bundle, which ask to be copied with it. */

import { readFile, readdir } from "node:fs/promises"
import { join } from "node:path"

/** Licences that let a bundle be under the one of this repository, as long as it has their texts. */
const permitted = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"])

/** Returns the folders of the packages that files belong to, without those of this repository. */
const foldersOf = (files: Iterable<string>): ReadonlyArray<string> => {
  const folders = [...files].flatMap((file) => {
    const [, folder] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file) ?? []
    return folder === undefined ? [] : [folder]
  })
  return [...new Set(folders)]
}

const noticeOf = async (folder: string): Promise<string> => {
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8"))
  const { license, name, version } = manifest
  if (!permitted.has(license)) throw new Error(`${name} is under ${license}, which is not known`)
  const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)\b/i.test(file))
  if (files.length === 0) throw new Error(`${name} has no file with its licence`)
  const texts = files.toSorted().map((file) => readFile(join(folder, file), "utf8"))
  return [`${name} ${version} (${license})`, ...(await Promise.all(texts))]
    .map((text) => text.replaceAll("\r\n", "\n").trim())
    .join("\n\n")
}

/** Prints the licences of the packages that files belong to. */
export const noticesOf = async (files: Iterable<string>): Promise<string> => {
  const notices = await Promise.all(foldersOf(files).map(noticeOf))
  const line = `\n\n${"-".repeat(80)}\n\n`
  return `${["This contains code of other packages, under these licences.", ...notices.toSorted()].join(line)}\n`
}
