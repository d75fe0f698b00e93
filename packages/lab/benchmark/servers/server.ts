/** A process that serves: it says where, and answers when it is asked. */

import type { Server } from "node:net"
import { listen as listenOn } from "../../listening.ts"

/** Sends the port to the parent, and answers its messages, by default with the processor time. */
export const announce = (
  port: number,
  answer: (question: unknown) => object = () => process.cpuUsage(),
): void => {
  process.on("message", (question) => process.send?.(answer(question)))
  process.on("disconnect", () => process.exit())
  process.send?.(port)
}

/** Announces the port of a URL. */
export const announcePort = (url: string): void => announce(Number(new URL(url).port))

/** Listens on a free port and announces it. */
export const listen = async (
  server: Server,
  answer?: (question: unknown) => object,
): Promise<void> => announce(await listenOn(server), answer)
