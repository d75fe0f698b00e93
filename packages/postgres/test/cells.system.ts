/** Cells in two databases: all tests for the routed ports. The quick suite runs a sample. */

import { certifyCells } from "./certifying.ts"

certifyCells(10)
