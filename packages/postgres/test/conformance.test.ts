/** All ports on PostgreSQL. */

import { certifyPostgres } from "./certifying.ts"

certifyPostgres(5)
