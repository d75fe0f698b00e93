/** The command `tenure`, with its subcommands. */

import * as Command from "effect/cli/Command"
import { audit } from "./audit.ts"
import { migrate } from "./database/migrate.ts"
import { exportAll, importAll } from "./database/moving.ts"
import { moveProject } from "./database/movingProject.ts"
import { dev } from "./dev/command.ts"
import { doctor } from "./doctor.ts"
import { init } from "./init/command.ts"
import { keys } from "./keys.ts"
import { listen } from "./listen/command.ts"
import { extendAll, members } from "./members/commands.ts"
import { profiles } from "./profiles.ts"
import { projects } from "./projects.ts"
import { sign, verify } from "./signing.ts"
import { status } from "./status.ts"
import { trigger } from "./trigger/command.ts"
import { webhooks } from "./webhooks.ts"

/** The command. */
export const tenure = Command.make("tenure").pipe(
  Command.withDescription("Membership end dates in your backend."),
  Command.withExamples([
    { command: "tenure dev", description: "Try it here; nothing else has to run" },
    {
      command: "tenure members extend 1001 2027-12-31 --project shop",
      description: "With TENURE_URL and TENURE_TOKEN of a server, or TENURE_DATABASE_URL",
    },
    { command: "tenure doctor", description: "What is wrong, and what to do" },
  ]),
  Command.withSubcommands([
    init,
    dev,
    listen,
    projects,
    members,
    extendAll,
    keys,
    webhooks,
    audit,
    trigger,
    status,
    doctor,
    sign,
    verify,
    migrate,
    exportAll,
    importAll,
    moveProject,
    profiles,
  ]),
)
