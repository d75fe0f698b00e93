/** Packs all packages, which are built, into the folder that is the argument, for the checks that `PACKED` points there. */

import { packInto } from "./folders.js"

packInto(process.argv[2])
