#!/usr/bin/env node
import { main } from "@tenure/cli"

main()
