/** Cells in two databases: all tests of the routed ports, of which the quick suite runs a sample. */

import { certifyCells } from "./certifying-cells.ts"

certifyCells(10)
