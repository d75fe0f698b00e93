#!/usr/bin/env node
import { main } from "@tenure/postgres/bin/program"

await main(() => import("@tenure/embedded"))
