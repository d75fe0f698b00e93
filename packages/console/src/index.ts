/** The operator's web page of Tenure, for every host. */
export { type Authorize, type ConsoleOptions, consoleOptions, tenureConsole } from "./console.ts"
