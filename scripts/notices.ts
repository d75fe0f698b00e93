/** The third-party licences that must accompany a bundle, because it contains their packages' code. */

import { readFile, readdir } from "node:fs/promises"
import { join } from "node:path"

/** Licences compatible with this repository's, as long as the bundle includes their texts. */
const permitted = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"])

/** Returns the third-party package folders that contain the files. */
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

const line = `\n\n${"-".repeat(80)}\n\n`

/** Returns the licences for code inside this repository's generated modules, such as the console page. */
const noticesWithin = async (files: Iterable<string>): Promise<ReadonlyArray<string>> => {
  const folders = [...files].flatMap((file) => {
    const [, folder] = /^(.*)\/(?:src|dist)\/[\w-]+\.generated\.[jt]s$/.exec(file) ?? []
    return folder === undefined ? [] : [folder]
  })
  const texts = folders.map((folder) =>
    readFile(join(folder, "NOTICES.txt"), "utf8").catch(() => ""),
  )
  return (await Promise.all(texts)).flatMap((text) => text.trim().split(line).slice(1))
}

/** Prints the third-party licences for a bundle's files. */
export const noticesOf = async (files: Iterable<string>): Promise<string> => {
  const own = await noticesWithin(files)
  const notices = await Promise.all(foldersOf(files).map(noticeOf))
  const all = new Set([...own, ...notices].toSorted())
  return `${["This contains code of other packages, under these licences.", ...all].join(line)}\n`
}
