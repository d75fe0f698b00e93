/** The same as `raw`, except that requests which arrive together are answered together, as by Tenure. */

import { createServer } from "node:http"
import { answer, read } from "./by-hand.ts"
import { listen } from "./server.ts"

let waiting: Array<() => void> = []

const answerAll = (): void => {
  const turns = waiting
  waiting = []
  for (const turn of turns) turn()
}

const takeTurn = (turn: () => void): void => {
  if (waiting.push(turn) === 1) setImmediate(answerAll)
}

listen(
  createServer((request, response) =>
    read(request, (body) => takeTurn(() => answer(body, response))),
  ),
)
