/**
 * Loaded before a server: when it gets the signal SIGUSR2, it collects its garbage and writes how many bytes its heap
 * holds to the file `HEAP_FILE`.
 */

import { renameSync, writeFileSync } from "node:fs"

const file = process.env["HEAP_FILE"] ?? ""

process.on("SIGUSR2", () => {
  globalThis.gc()
  // Readers never see it in part.
  writeFileSync(`${file}.new`, String(process.memoryUsage().heapUsed))
  renameSync(`${file}.new`, file)
})
