/** All ports on PostgreSQL, with ten times as many inputs per property as the quick suite. */

import { certifyPostgres } from "./certifying.ts"

certifyPostgres(50)
