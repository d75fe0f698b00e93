/** Texts from files or standard input. */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { failed } from "../Failure.ts"
import { fileProblem } from "./fileProblem.ts"

/** The bytes of a file, or those of standard input for `-`. */
const bytesOf = (path: string) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { stdin } = yield* Stdio.Stdio
      const { stream } = yield* FileSystem.FileSystem
      return path === "-" ? stdin : stream(path)
    }),
  ).pipe(Stream.mapError((error) => failed(fileProblem(path, error))))

/** The whole text of a file, or that of standard input for `-`. */
export const readAll = (path: string) => Stream.mkString(Stream.decodeText(bytesOf(path)))
