/** A process that serves its parent: it says when it is ready, and answers when it is asked. */

import type { Server } from "node:net"
import { listen as listenOn } from "../../listening.ts"

/** Greets the parent, and answers its messages, by default with the processor time. */
export const announce = <Question>(
  greeting: number | string | object,
  answer: (question: Question) => object | Promise<object> = () => process.cpuUsage(),
): void => {
  process.on("message", async (question: Question) => process.send?.(await answer(question)))
  process.on("disconnect", () => process.exit())
  process.send?.(greeting)
}

/** Announces a URL's port. */
export const announcePort = (url: string): void => announce(Number(new URL(url).port))

/** Listens on a free port and announces it. */
export const listen = async <Question>(
  server: Server,
  answer?: (question: Question) => object,
): Promise<void> => announce(await listenOn(server), answer)
